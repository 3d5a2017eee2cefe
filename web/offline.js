/* A service worker: once loaded, the page works without a network. It also lets pages of static servers share memory
 * between threads (from the second visit on), by the headers that isolate a page from other origins. */

const CACHE = 'dcrf-playground';
const FILES = ['./', 'index.html', 'style.css', 'icon.svg', 'scene.png', 'app.js', 'autosave.js', 'client.js', 'countdown.js', 'dcrf.js',
  'examples.js', 'figures.js', 'files.js', 'fullsize.js', 'helper.js', 'indexed.js', 'inputs.js', 'labels.js', 'maps.js', 'outputs.js', 'pointers.js', 'tiff.js', 'tile.js', 'viewport.js',
  'load.js', 'painter.js', 'picture.js', 'plot.js', 'session.js', 'settings.js', 'strokes.js', 'views.js', 'wasi.js', 'worker.js',
  'dcrf.wasm', 'dcrf-threads.wasm', 'dcrf-plain.wasm'];

addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});
addEventListener('activate', (event) => event.waitUntil(clients.claim()));

function isolated(response) {
  if (response.status === 0 || !response.body) return response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  headers.set('Cross-Origin-Resource-Policy', 'same-origin');
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/* The server first, so that nothing is stale; the cache where it cannot be reached. */
async function answer(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return isolated(response);
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (!kept) throw error;
    return isolated(kept);
  }
}

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method === 'GET' && new URL(request.url).origin === location.origin) event.respondWith(answer(request));
});
