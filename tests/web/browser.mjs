/* A browser and the page in it, for the tests. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const { chromium } = createRequire(`${resolve('build-web/node')}/`)('playwright-core');

/* As root Chromium needs --no-sandbox; the rest keeps it from talking to anyone by itself. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

/* Whatever takes as long hangs; a busy machine is no reason. */
const HANG_MS = Number(process.env.HANG_MS ?? 600000);

/** The page on a server of its own: { url, stop }. */
export function serve(...options) {
  const server = spawn('script/serve', ['--port', '0', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((done, failed) => {
    server.once('exit', (code) => failed(new Error(`script/serve left with ${code}`)));
    server.stdout.once('data', (text) => done({ url: String(text).split(' ')[0], stop: () => server.kill() }));
  });
}

export async function launch(executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium', flags = []) {
  const profile = mkdtempSync(join(tmpdir(), 'dcrf-chromium-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, timeout: HANG_MS, args: [...FLAGS, ...flags],
    viewport: { width: 1280, height: 900 }, hasTouch: true, acceptDownloads: true });
  context.setDefaultTimeout(HANG_MS);
  return { context, close: async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  } };
}

/** Open the page; `requests` collects every address that it asks for, `errors` what goes wrong in it. */
export async function open(context, url) {
  const page = await context.newPage();
  const requests = [], errors = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(url);
  await page.waitForFunction(() => globalThis.playground?.isReady && globalThis.playground.picture);
  return { page, requests, errors };
}

/** Drag the mouse over points of the photograph. */
export async function drag(page, points) {
  await page.evaluate(() => scrollTo(0, 0));
  const box = await page.locator('#picture').boundingBox();
  const [width, height] = await page.evaluate(() => [playground.picture.width, playground.picture.height]);
  const at = ([x, y]) => [box.x + x / width * box.width, box.y + y / height * box.height];
  await page.mouse.move(...at(points[0]));
  await page.mouse.down();
  for (const point of points.slice(1)) await page.mouse.move(...at(point), { steps: 4 });
  await page.mouse.up();
}

/** Wait for the result of what was asked for last. */
export async function settled(page) {
  await page.waitForFunction(() => !playground.job && playground.result?.size === 'full');
}
