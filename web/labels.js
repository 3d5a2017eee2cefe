/* The labels: their list beside the picture, and the chips below it that a thumb reaches. */

/* Colours that people with colour-blind eyes tell apart (Okabe and Ito). */
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#56b4e9', '#d55e00', '#999999'];
const MOST_LABELS = 20;
const OBJECT = 1;

export const rgbOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
export const hexOf = (number) => `#${number.toString(16).padStart(6, '0')}`;

function make(name, attributes, label) {
  const made = Object.assign(document.createElement(name), attributes);
  if (label) made.setAttribute('aria-label', label);
  return made;
}

export class Labels {
  /** @param page { list, chips, add, recoloured, renamed, removed, selected, isFixed } */
  constructor(page) {
    this.page = page;
    this.reset();
  }

  /* What is looked for is painted first. */
  reset() {
    this.all = [{ name: 'background', colour: COLOURS[0] }, { name: 'object', colour: COLOURS[1] }];
    this.current = OBJECT;
  }

  get colours() {
    return this.all.map(({ colour }) => rgbOf(colour));
  }

  get currentName() {
    return this.all[this.current].name;
  }

  item(label, i) {
    const item = make('li');
    const radio = make('input', { type: 'radio', name: 'label', checked: i === this.current, onchange: () => this.select(i) }, `paint ${label.name}`);
    const colour = make('input', { type: 'color', value: label.colour, oninput: () => {
      label.colour = colour.value;
      this.showChips();
      this.page.recoloured();
    } }, `colour of ${label.name}`);
    const name = make('input', { type: 'text', value: label.name, maxLength: 40, onfocus: () => this.select(i), oninput: () => {
      label.name = name.value;
      this.showChips();
      this.page.renamed();
    } }, `name of label ${i + 1}`);
    const remove = make('button', { type: 'button', textContent: '×', disabled: this.all.length <= 2 || this.page.isFixed(), onclick: () => this.remove(i) }, `remove ${label.name}`);
    item.append(radio, colour, name, remove);
    return item;
  }

  show() {
    this.page.list.replaceChildren(...this.all.map((label, i) => this.item(label, i)));
    this.page.add.disabled = this.all.length >= MOST_LABELS || this.page.isFixed();
    this.showChips();
  }

  showChips() {
    this.page.chips.replaceChildren(...this.all.map(({ name, colour }, i) => {
      const chip = make('button', { type: 'button', className: 'chip', onclick: () => this.select(i) }), swatch = make('span', { className: 'swatch' });
      swatch.style.background = colour;
      chip.setAttribute('aria-pressed', String(i === this.current));
      chip.append(swatch, name || `label ${i + 1}`);
      return chip;
    }));
  }

  select(i) {
    this.current = Math.min(i, this.all.length - 1);
    [...this.page.list.querySelectorAll('input[type=radio]')].forEach((radio, k) => { radio.checked = k === this.current; });
    this.showChips();
    this.page.selected();
  }

  add() {
    const i = this.all.length;
    const colour = COLOURS[i] ?? `#${((i * 2654435761) & 0xffffff).toString(16).padStart(6, '0')}`;
    this.all.push({ name: `label ${i + 1}`, colour });
  }

  /** This many, and in these colours (numbers 0xrrggbb) where there are any. */
  setCount(count, colours) {
    while (this.all.length < count) this.add();
    this.all.length = count;
    colours?.slice(0, count).forEach((colour, i) => { this.all[i].colour = hexOf(colour); });
    this.current = Math.min(OBJECT, count - 1);
    this.show();
  }

  remove(i) {
    this.all.splice(i, 1);
    this.current = Math.min(this.current, this.all.length - 1);
    this.show();
    this.page.removed(i);
  }
}
