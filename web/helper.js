/* A thread lent to the module: it stays in the library until it is ended. */
import { wasiImports } from './wasi.js';

const onMessage = async ({ module, memory, stackTop }) => {
  const instance = await WebAssembly.instantiate(module, {
    wasi_snapshot_preview1: wasiImports(() => memory),
    env: { memory, should_stop: () => 0 },
  });
  instance.exports.__stack_pointer.value = stackTop;
  instance.exports.dcrf_wasm_help();
};

if (typeof WorkerGlobalScope !== 'undefined') {
  globalThis.onmessage = (event) => onMessage(event.data);
} else {
  const { parentPort } = await import('node:worker_threads');
  parentPort.once('message', onMessage);
}
