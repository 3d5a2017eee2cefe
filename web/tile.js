/* One tile of a large photograph: its probabilities, known for cells of some pixels, become labels of pixels. They are enlarged
 * guided by the photograph's colours; then a mean field with small kernels puts the borders on the edges. */
import { Session } from './session.js';
import { edgeKernels, EDGE_ITERATIONS } from './settings.js';

/** @param tile { rgba, width, height, probabilities, cells: [across, down], labels, cellPx } */
export async function refineTile(library, { rgba, width, height, probabilities, cells, labels, cellPx }) {
  const session = new Session(library, { data: rgba, width, height }, labels);
  try {
    session.setUnary(probabilities, { kind: 'probabilities', width: cells[0], height: cells[1] });
    for (const kernel of edgeKernels(cellPx)) session.addKernel(kernel);
    const { labels: refined } = await session.run({ iterations: EDGE_ITERATIONS, polish: false });
    return Uint8Array.from(refined);
  } finally {
    session.free();
  }
}
