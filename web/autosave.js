/* What a reload brings back: the photograph, what was painted, labels and choices, in this browser's own store (IndexedDB). A browser without one
 * (a private window) goes without. */

const DATABASE = 'dcrf-playground', STORE = 'work', KEY = 'last';
const PAUSE_MS = 300;

const promised = (request) => new Promise((done, failed) => {
  request.onsuccess = () => done(request.result);
  request.onerror = () => failed(request.error);
});

let database;
async function store(mode) {
  database ??= new Promise((done, failed) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
  return (await database).transaction(STORE, mode).objectStore(STORE);
}

/** What was kept, or undefined. */
export async function restore() {
  try {
    return await promised((await store('readonly')).get(KEY));
  } catch {
    return undefined;
  }
}

export class Autosave {
  /** @param work gives what is to be kept: anything that can be cloned */
  constructor(work) {
    this.work = work;
    addEventListener('pagehide', () => this.now());
    document.addEventListener('visibilitychange', () => document.hidden && this.now());
  }

  /** Something changed; it is kept when there is a moment of rest. */
  soon() {
    this.isDue = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE_MS);
  }

  async now() {
    clearTimeout(this.timer);
    if (!this.isDue) return;
    this.isDue = false;
    try {
      await promised((await store('readwrite')).put(this.work(), KEY));
    } catch { /* nothing can be kept: the page works without */ }
  }
}
