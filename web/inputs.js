/* Keys, and files that are dropped or pasted. */

const $ = (id) => document.getElementById(id);
const VIEWS = ['overlay', 'mask', 'boundaries', 'confidence', 'proven', 'beside'];

/** @param open called with a file and its name */
export function acceptFiles(target, open) {
  for (const name of ['dragenter', 'dragover'])
    document.addEventListener(name, (event) => {
      event.preventDefault();
      target.classList.add('dropping');
    });
  for (const name of ['dragleave', 'drop']) document.addEventListener(name, () => target.classList.remove('dropping'));
  const take = (files) => files[0] && open(files[0], files[0].name);
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  document.addEventListener('paste', (event) => take(event.clipboardData.files));
}

/** Keys of the whole page; not while a name is typed. @param page { setBrush, zoom, zoomStep, view, hasLabel, selectLabel } */
export function listenToKeys({ setBrush, zoom, zoomStep, view, hasLabel, selectLabel }) {
  const press = (id) => () => $(id).click();
  const keys = {
    z: press('undo'), Z: press('redo'), y: press('redo'), e: press('erase'), p: press('prove'), '?': press('help'),
    v: () => document.querySelector(`input[name=view][value=${VIEWS[(VIEWS.indexOf(view()) + 1) % VIEWS.length]}]`).click(),
    '[': () => setBrush(Number($('size').value) - 1),
    ']': () => setBrush(Number($('size').value) + 1),
    '+': () => zoom(zoomStep),
    '-': () => zoom(1 / zoomStep),
    0: () => zoom(0),
  };
  document.addEventListener('keydown', (event) => {
    if (event.target.matches('input[type=text], select') || event.altKey || $('keys').open) return;
    if ((event.ctrlKey || event.metaKey) && !'zZy'.includes(event.key)) return;
    if (/^[1-9]$/.test(event.key) && hasLabel(Number(event.key) - 1)) selectLabel(Number(event.key) - 1);
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  });
}
