/* Pictures to try it on, drawn here: each has a thing that stands out and something that makes it hard. */

const WIDTH = 480, HEIGHT = 320;

/* The same numbers every time. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function gradient(context, [x0, y0, x1, y1], ...colours) {
  const made = context.createLinearGradient(x0, y0, x1, y1);
  colours.forEach((colour, i) => made.addColorStop(i / (colours.length - 1), colour));
  return made;
}

function blob(context, x, y, radius, light, dark) {
  const shade = context.createRadialGradient(x - radius / 3, y - radius / 3, radius / 8, x, y, radius);
  shade.addColorStop(0, light);
  shade.addColorStop(1, dark);
  context.fillStyle = shade;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
}

/* Grain, as a camera leaves it. */
function grain(context, random, amount) {
  const image = context.getImageData(0, 0, WIDTH, HEIGHT);
  for (let a = 0; a < image.data.length; a += 4) {
    const noise = amount * (random() + random() + random() - 1.5);
    for (let c = 0; c < 3; c++) image.data[a + c] += noise + amount * (random() - 0.5) / 2;
  }
  context.putImageData(image, 0, 0);
}

function fruit(context, random) {
  context.fillStyle = gradient(context, [0, 0, 0, HEIGHT], '#cfd8dc', '#b0a090', '#7a5a40');
  context.fillRect(0, 0, WIDTH, HEIGHT);
  for (let i = 0; i < 60; i++) {
    context.fillStyle = `rgba(${60 + 40 * random()}, ${40 + 30 * random()}, 20, 0.15)`;
    context.fillRect(0, 200 + 120 * random(), WIDTH, 1 + 3 * random());
  }
  context.fillStyle = 'rgba(30, 20, 10, 0.35)';
  context.beginPath();
  context.ellipse(250, 272, 165, 22, 0, 0, 7);
  context.fill();
  blob(context, 165, 205, 66, '#ffd28a', '#c8620c');
  blob(context, 335, 215, 58, '#c8e07a', '#5a8a1c');
  blob(context, 250, 190, 78, '#f6a08c', '#8c1414');
  context.lineWidth = 6;
  context.strokeStyle = '#4a3218';
  context.beginPath();
  context.moveTo(250, 120);
  context.quadraticCurveTo(256, 96, 276, 88);
  context.stroke();
  context.fillStyle = '#3c7a28';
  context.beginPath();
  context.ellipse(290, 96, 28, 11, -0.4, 0, 7);
  context.fill();
  grain(context, random, 14);
}

function harbour(context, random) {
  context.fillStyle = gradient(context, [0, 0, 0, 190], '#f2c9a0', '#e8b08c', '#c8a0a0');
  context.fillRect(0, 0, WIDTH, 190);
  blob(context, 380, 80, 26, '#fff6d8', '#f8d898');
  context.fillStyle = gradient(context, [0, 180, 0, HEIGHT], '#8c94ac', '#2c4460');
  context.fillRect(0, 180, WIDTH, 140);
  context.fillStyle = '#6a7288';
  context.beginPath();
  context.moveTo(0, 182);
  for (let x = 0; x <= WIDTH; x += 12) context.lineTo(x, 162 + 14 * Math.sin(x / 47) + 8 * Math.sin(x / 19));
  context.lineTo(WIDTH, 182);
  context.fill();
  for (let i = 0; i < 220; i++) {
    context.fillStyle = `rgba(${200 + 55 * random()}, ${190 + 40 * random()}, 190, ${0.08 + 0.25 * random()})`;
    const y = 184 + 134 * random();
    context.fillRect(WIDTH * random(), y, (y - 170) / 3, 1 + (y - 170) / 70);
  }
  context.fillStyle = '#f4efe4';
  for (const [x, tip] of [[176, 96], [268, 128]]) {
    context.beginPath();
    context.moveTo(x, 40);
    context.quadraticCurveTo(x + (tip - x) / 3, 130, tip, 218);
    context.lineTo(x, 222);
    context.fill();
  }
  context.fillStyle = '#5a3020';
  context.fillRect(180, 30, 5, 200);
  context.beginPath();
  context.moveTo(84, 226);
  context.lineTo(300, 226);
  context.quadraticCurveTo(282, 262, 250, 264);
  context.lineTo(120, 264);
  context.fill();
  grain(context, random, 16);
}

function leaf(context, x, y, size, angle, colour) {
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(-size, 0);
  context.quadraticCurveTo(0, -size * 0.7, size, 0);
  context.quadraticCurveTo(0, size * 0.7, -size, 0);
  context.fill();
  context.strokeStyle = 'rgba(255, 255, 210, 0.35)';
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(-size, 0);
  context.lineTo(size, 0);
  context.stroke();
  context.restore();
}

function butterfly(context, random) {
  context.fillStyle = '#2c4a20';
  context.fillRect(0, 0, WIDTH, HEIGHT);
  for (let i = 0; i < 260; i++)
    leaf(context, WIDTH * random(), HEIGHT * random(), 16 + 26 * random(), 6.3 * random(), `rgb(${40 + 80 * random()}, ${90 + 90 * random()}, ${30 + 40 * random()})`);
  context.save();
  context.translate(240, 165);
  context.rotate(-0.18);
  for (const side of [-1, 1])
    for (const [x, y, rx, ry, tilt, light, dark] of [[58, -42, 66, 42, -0.5, '#f8b040', '#c04a10'], [46, 46, 46, 36, 0.6, '#f6c868', '#b85a18']]) {
      context.save();
      context.scale(side, 1);
      context.translate(x, y);
      context.rotate(tilt);
      context.fillStyle = gradient(context, [-rx, 0, rx, 0], light, dark);
      context.beginPath();
      context.ellipse(0, 0, rx, ry, 0, 0, 7);
      context.fill();
      context.lineWidth = 6;
      context.strokeStyle = '#241408';
      context.stroke();
      context.fillStyle = '#fff4dc';
      for (let i = 0; i < 4; i++) context.fillRect(rx * 0.72, -ry * 0.4 + 9 * i, 5, 4);
      context.restore();
    }
  context.fillStyle = '#1c1008';
  context.beginPath();
  context.ellipse(0, 0, 8, 62, 0, 0, 7);
  context.fill();
  context.restore();
  grain(context, random, 12);
}

const EXAMPLES = { fruit, harbour, butterfly };

function drawExample(name) {
  const canvas = new OffscreenCanvas(WIDTH, HEIGHT), random = numbers(name.length * 7919);
  EXAMPLES[name](canvas.getContext('2d', { willReadFrequently: true }), random);
  return canvas;
}

function exampleButton(name, thumbnail, open) {
  const button = Object.assign(document.createElement('button'), { type: 'button', title: `Example: ${name}`, id: `example-${name}`, onclick: open });
  button.setAttribute('aria-label', `Open the example ${name}`);
  button.append(thumbnail);
  return button;
}

/** Small pictures that open the examples: the scene of the library's own example, and those above. */
export function showExamples(row, { openScene, open }) {
  const scene = exampleButton('scene', Object.assign(new Image(60, 40), { src: 'scene.png', alt: '' }), openScene);
  row.append(scene, ...Object.keys(EXAMPLES).map((name) => {
    const drawn = drawExample(name), thumbnail = Object.assign(document.createElement('canvas'), { width: 120, height: 80 });
    thumbnail.setAttribute('aria-hidden', 'true');
    thumbnail.getContext('2d').drawImage(drawn, 0, 0, 120, 80);
    return exampleButton(name, thumbnail, async () => open(await drawn.convertToBlob({ type: 'image/png' }), `${name}.png`));
  }));
}
