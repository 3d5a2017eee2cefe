/* What a visitor does with the page, for the tests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { readNpy, readPng } from './read.mjs';

/* The colours of an indexed PNG. */
function paletteOf(path) {
  const bytes = readFileSync(path), at = bytes.indexOf('PLTE');
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at - 4));
}

export class Visitor {
  /** @param page gives the page; files are saved in `scratch` */
  constructor(page, scratch) {
    Object.assign(this, { current: page, scratch });
  }

  get page() {
    return this.current();
  }

  message() {
    return this.page.textContent('#message');
  }

  /** A picture of the page, where SCREENSHOTS names a folder. */
  async picture(name, { fullPage = true } = {}) {
    if (process.env.SCREENSHOTS) await this.page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`), fullPage });
  }

  async says(pattern) {
    await this.page.waitForFunction(({ source }) => new RegExp(source).test(document.getElementById('message').textContent), { source: pattern.source })
      .catch(async () => assert.match(await this.message(), pattern));
  }

  choose(label) {
    return this.page.locator('#labels input[type=radio]').nth(label).check();
  }

  strokeCount() {
    return this.page.evaluate(() => playground.strokes.done.length);
  }

  /** The path of what a button saves. */
  async save(button) {
    const [file] = await Promise.all([this.page.waitForEvent('download'), this.page.click(button)]);
    return this.keep(file);
  }

  async keep(file) {
    const path = join(this.scratch, file.suggestedFilename());
    await file.saveAs(path);
    return path;
  }

  /** Drop a file on the page, as a file manager would. */
  async drop(name, bytes) {
    await this.page.evaluate(([fileName, base64]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], fileName));
      document.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, [name, Buffer.from(bytes).toString('base64')]);
  }

  /** What the command makes of an image and saved settings: { labels, result, text }. Files are looked for where they were saved. */
  command(image, settings) {
    const run = (...options) => execFileSync(resolve('build/dcrf'), ['solve', resolve(image), '--config', basename(settings), ...options],
      { cwd: this.scratch, encoding: 'utf8', stdio: 'pipe' });
    const text = run('-o', 'labels.npy');
    run('-q', '-o', 'labels.png', '--json', 'result.json');
    return { text, labels: readNpy(join(this.scratch, 'labels.npy')).data, result: JSON.parse(readFileSync(join(this.scratch, 'result.json'))) };
  }

  /**
   * The strokes (or the visitor's own file, which lies in `scratch`) and the settings that the page saves give the command the same labels, all of
   * them, in the same colours and with the same names, and nothing to warn of. Energies differ by rounding: vectors of four floats, no
   * fused multiply-adds.
   */
  async compareWithCommand(image) {
    if (await this.page.isEnabled('#save-strokes')) await this.save('#save-strokes');
    const settings = await this.save('#save-json'), mask = await this.save('#save-mask'), saved = JSON.parse(readFileSync(settings));
    const { text, labels, result } = this.command(image, settings);
    if (saved.page.strength === 1) assert.doesNotMatch(text, /warning|would suit/);
    const different = readPng(mask).data.reduce((sum, label, a) => sum + (label === labels[a] ? 0 : 1), 0);
    assert.equal(different, 0, `${different} of ${labels.length} labels are not the command's`);
    assert.ok(Math.abs(saved.energy - result.energy) <= 1e-5 * Math.abs(result.energy), `energy ${saved.energy}, the command's ${result.energy}`);
    assert.equal(saved.settings.iterations, result.settings.iterations);
    const known = saved.labels.slice(0, result.labels ?? 2), colours = 3 * known.length;
    assert.deepEqual(paletteOf(mask).subarray(0, colours), paletteOf(join(this.scratch, 'labels.png')).subarray(0, colours));
    for (const { name } of known) assert.ok(JSON.stringify(result).includes(name), `the command knows '${name}'`);
  }
}
