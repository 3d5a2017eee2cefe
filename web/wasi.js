/* The few functions of WASI (preview 1) that dcrf's module asks its host for: a clock, random bytes, an
 * environment without variables, and text for standard output. No files, no network. */

const SUCCESS = 0, BAD_FILE = 8;

/** Thrown where the module calls exit(). */
export class Exit extends Error {
  constructor(code) {
    super(`the module left with status ${code}`);
    this.code = code;
  }
}

/**
 * @param memory a function that returns the module's memory
 * @param args the arguments of a program, its name first
 * @param write what to do with text, called with a string
 */
export function wasiImports(memory, { args = [], environment = [], write = () => {} } = {}) {
  const encoder = new TextEncoder(), decoder = new TextDecoder();
  const bytes = () => new Uint8Array(memory().buffer);
  const words = () => new DataView(memory().buffer);

  const sizes = (list, countAt, bytesAt) => {
    words().setUint32(countAt, list.length, true);
    words().setUint32(bytesAt, list.reduce((sum, text) => sum + encoder.encode(text).length + 1, 0), true);
    return SUCCESS;
  };
  const strings = (list, pointersAt, textAt) => {
    for (const text of list) {
      const encoded = encoder.encode(`${text}\0`);
      words().setUint32(pointersAt, textAt, true);
      bytes().set(encoded, textAt);
      pointersAt += 4;
      textAt += encoded.length;
    }
    return SUCCESS;
  };

  return {
    args_sizes_get: (countAt, bytesAt) => sizes(args, countAt, bytesAt),
    args_get: (pointersAt, textAt) => strings(args, pointersAt, textAt),
    environ_sizes_get: (countAt, bytesAt) => sizes(environment, countAt, bytesAt),
    environ_get: (pointersAt, textAt) => strings(environment, pointersAt, textAt),
    clock_time_get(clock, precision, at) {
      const ms = clock === 0 ? Date.now() : performance.now();
      words().setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
      return SUCCESS;
    },
    fd_write(file, vectorsAt, count, writtenAt) {
      let total = 0, text = '';
      for (let i = 0; i < count; i++) {
        const from = words().getUint32(vectorsAt + 8 * i, true);
        const length = words().getUint32(vectorsAt + 8 * i + 4, true);
        text += decoder.decode(bytes().slice(from, from + length));
        total += length;
      }
      write(text);
      words().setUint32(writtenAt, total, true);
      return SUCCESS;
    },
    fd_fdstat_get(file, at) {
      bytes().fill(0, at, at + 24);
      bytes()[at] = 2; /* a character device: standard output is not a file that can be sought */
      return file <= 2 ? SUCCESS : BAD_FILE;
    },
    fd_close: () => SUCCESS,
    fd_seek: () => BAD_FILE,
    fd_read: () => BAD_FILE,
    fd_prestat_get: () => BAD_FILE,
    fd_prestat_dir_name: () => BAD_FILE,
    fd_fdstat_set_flags: () => BAD_FILE,
    path_open: () => BAD_FILE,
    random_get(at, count) {
      bytes().set(crypto.getRandomValues(new Uint8Array(count)), at);
      return SUCCESS;
    },
    sched_yield: () => SUCCESS,
    proc_exit(code) {
      throw new Exit(code);
    },
  };
}
