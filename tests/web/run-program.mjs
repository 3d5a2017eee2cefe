/* Runs a program compiled for WebAssembly: node run-program.mjs PROGRAM.wasm [ARGUMENT...] */
import { readFile } from 'node:fs/promises';
import { Exit, wasiImports } from '../../web/wasi.js';

const [path, ...args] = process.argv.slice(2);
let instance;
const wasi = wasiImports(() => instance.exports.memory, {
  args: [path, ...args],
  environment: Object.entries(process.env).filter(([name]) => name.startsWith('DCRF_')).map(([n, v]) => `${n}=${v}`),
  write: (text) => process.stdout.write(text),
});
instance = await WebAssembly.instantiate(await WebAssembly.compile(await readFile(path)), { wasi_snapshot_preview1: wasi });
try {
  instance.exports._start();
} catch (error) {
  if (!(error instanceof Exit)) throw error;
  process.exitCode = error.code;
}
