/* How long a proof may still take: a sentence and a bar, renewed several times a second. */

const RENEW_MS = 250;
const STAGES = {
  bounding: 'Proving: raising the lower bound',
  excluding: 'Proving: excluding labels, pixel by pixel',
};

export class Countdown {
  /** @param show called with a sentence and the part that is over, from 0 to 1 */
  constructor(show) {
    this.show = show;
  }

  /** @param laterS seconds that later stages may take */
  start(stage, limitS, laterS) {
    this.stop();
    const began = performance.now();
    const renew = () => {
      const left = Math.max(0, limitS - (performance.now() - began) / 1000) + laterS, all = limitS + laterS;
      const gap = Number.isFinite(this.gap) ? ` The gap is ${(100 * this.gap).toPrecision(2)} % so far.` : '';
      this.show(`${STAGES[stage]}; at most ${Math.ceil(left)} s left.${gap}`, 1 - left / all);
    };
    this.stage = stage;
    this.timer = setInterval(renew, RENEW_MS);
    renew();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = this.stage = undefined;
  }
}
