/* Loading the module that fits: vectors of 128 bits where there are any, threads where memory can be shared. */
import { wasiImports } from './wasi.js';

const inNode = typeof process !== 'undefined' && Boolean(process.versions?.node);

/* A function that returns a vector: () -> v128, i32.const 0, i32x4.splat. */
const WITH_VECTORS = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 17, 11]);

/* Statuses of the library. */
export const ERROR_MEMORY = -2, ERROR_INTERRUPTED = -9;

const FILES = { simd: 'dcrf.wasm', threads: 'dcrf-threads.wasm', plain: 'dcrf-plain.wasm' };
const FIRST_PAGES = 64, MOST_PAGES = 65535;
const HELPER_STACK_BYTES = 1 << 20;

/** Whether this host has WebAssembly's vector instructions. */
export function hasVectors() {
  return WebAssembly.validate(WITH_VECTORS);
}

/** Whether memory can be shared between threads: in a browser, on pages that are cross-origin isolated. */
export function canShareMemory() {
  return typeof SharedArrayBuffer !== 'undefined' && (inNode || Boolean(globalThis.crossOriginIsolated));
}

async function coreCount() {
  if (!inNode) return globalThis.navigator?.hardwareConcurrency ?? 1;
  return (await import('node:os')).availableParallelism();
}

async function compile(url) {
  if (url.protocol === 'file:' && inNode) {
    const { readFile } = await import('node:fs/promises');
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.pathname}: ${response.status} ${response.statusText}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

async function startHelper(message) {
  const url = new URL('./helper.js', import.meta.url);
  const worker = inNode ? new (await import('node:worker_threads')).Worker(url)
    : new Worker(url, { type: 'module' });
  worker.unref?.();
  worker.postMessage(message);
  return worker;
}

/**
 * @param variant 'simd', 'threads' or 'plain'; by default what this host can do best
 * @param threads how many may work, where memory can be shared; by default one for each core
 * @param shouldStop asked from inside long calls: whether to end them
 */
export async function load({ variant, threads, base = import.meta.url, shouldStop = () => false } = {}) {
  const wanted = threads ?? await coreCount();
  const best = !hasVectors() ? 'plain' : canShareMemory() && wanted > 1 ? 'threads' : 'simd';
  const chosen = variant ?? best;
  if (!FILES[chosen]) throw new Error(`there is no variant '${chosen}'; choose simd, threads or plain`);
  const module = await compile(new URL(FILES[chosen], base));
  const memory = chosen === 'threads'
    ? new WebAssembly.Memory({ initial: FIRST_PAGES, maximum: MOST_PAGES, shared: true }) : undefined;
  let exports;
  const instance = await WebAssembly.instantiate(module, {
    wasi_snapshot_preview1: wasiImports(() => memory ?? exports.memory),
    env: { memory, should_stop: () => (shouldStop() ? 1 : 0) },
  });
  exports = instance.exports;
  exports._initialize?.();
  const helpers = [];
  if (chosen === 'threads')
    for (let i = 1; i < wanted; i++) {
      const stack = exports.malloc(HELPER_STACK_BYTES);
      helpers.push(await startHelper({ module, memory, stackTop: (stack + HELPER_STACK_BYTES) & ~15 }));
    }
  return new Library(exports, memory ?? exports.memory, chosen, helpers);
}

/** A loaded module. */
export class Library {
  constructor(exports, memory, variant, helpers) {
    this.exports = exports;
    this.memory = memory;
    this.variant = variant;
    this.helpers = helpers;
  }

  get version() {
    return this.text(this.exports.dcrf_web_version());
  }

  /** 'simd128' or 'c'. */
  get cpu() {
    return this.text(this.exports.dcrf_web_cpu());
  }

  get threads() {
    return 1 + this.helpers.length;
  }

  get memoryBytes() {
    return this.memory.buffer.byteLength;
  }

  /** Give the threads back. */
  close() {
    for (const helper of this.helpers) helper.terminate();
    this.helpers = [];
  }

  /* The string at an address. */
  text(at) {
    const bytes = new Uint8Array(this.memory.buffer);
    return new TextDecoder().decode(bytes.slice(at, bytes.indexOf(0, at)));
  }

  /* A view of the module's memory, valid until memory grows: until the next call. */
  view(Type, at, count) {
    return new Type(this.memory.buffer, at, count);
  }

  /* What a call returned, or its error. */
  check(status) {
    if (status >= 0) return status;
    const error = new Error(this.text(this.exports.dcrf_web_error()));
    error.status = this.exports.dcrf_web_error_status();
    throw error;
  }
}
