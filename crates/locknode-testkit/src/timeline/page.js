(function () {
  var svg = document.getElementById('ln'), plot = document.getElementById('ln-plot');
  var tip = document.getElementById('ln-tip'), axis = document.getElementById('ln-axis');
  var messages = document.getElementById('ln-messages'), density = document.getElementById('ln-density');
  var WIDTH = +plot.getAttribute('width'), GUTTER = +plot.getAttribute('x');
  var from = +svg.dataset.from, span = +svg.dataset.span;
  var scale = 1, left = 0, mode = 0, flags = [], items = [], sent = [], pending = false;

  // What is pointed at is told at once, and not twice.
  plot.querySelectorAll('title').forEach(function (title) {
    title.parentNode.setAttribute('data-t', title.textContent);
    title.remove();
  });
  function number(element, name) { return +element.getAttribute(name); }
  plot.querySelectorAll('rect,use,line,text').forEach(function (element) {
    if (axis.contains(element) || element.hasAttribute('data-fixed')) return;
    var item = { e: element, tag: element.tagName, x: number(element, 'x') };
    if (item.tag === 'rect') {
      item.w = number(element, element.hasAttribute('data-width') ? 'data-width' : 'width');
      item.least = number(element, 'data-least') || 1;
    }
    else if (item.tag === 'line') { item.x = number(element, 'x1'); item.x2 = number(element, 'x2'); }
    else if (item.tag === 'text') {
      item.room = number(element, 'data-r');
      item.names = ['data-0', 'data-1', 'data-2'].map(function (name) { return element.getAttribute(name); });
    }
    if (element.classList.contains('ln-flag')) {
      item.x = number(element, 'data-x'); item.w = number(element, 'data-w');
      item.parts = [element.previousElementSibling, element.previousElementSibling.previousElementSibling];
      flags.push(item);
    } else (messages.contains(element) ? sent : items).push(item);
  });
  function at(x) { return (x - left) * scale; }
  // Browsers draw what is far outside wrongly.
  function clip(x) { return Math.max(-3000, Math.min(WIDTH + 3000, x)); }

  function label(item) {
    var x = at(item.x - 3), shown = Math.max(x, 0), room = x + item.room * scale - shown;
    var name = item.names.find(function (text) { return text && text.length * 6.2 + 5 <= room; });
    item.e.textContent = name || '';
    item.e.setAttribute('x', clip(shown + 3));
  }
  function place(item) {
    var e = item.e, x = at(item.x);
    if (item.tag === 'rect') {
      var end = clip(x + item.w * scale);
      e.setAttribute('x', clip(x));
      e.setAttribute('width', Math.max(item.least, end - clip(x)));
    } else if (item.tag === 'line') {
      e.setAttribute('x1', x); e.setAttribute('x2', at(item.x2));
    } else if (e.hasAttribute('data-w')) {
      var start = at(number(e, 'data-x')), width = number(e, 'data-w');
      e.setAttribute('x', start > WIDTH ? start : Math.max(0, Math.min(start, WIDTH - width)));
    } else if (item.tag === 'text') label(item);
    else e.setAttribute('x', x);
  }
  function placeFlags() {
    var rows = +svg.dataset.flagRows, ends = [], top = Infinity;
    flags.forEach(function (flag) { top = Math.min(top, number(flag.parts[0], 'y')); });
    var seen = flags.filter(function (flag) { return at(flag.x) >= 0 && at(flag.x) <= WIDTH; }).length;
    var poleEnd = seen <= +svg.dataset.poles ? y2 - 2 : top + (rows + 1) * 15 - 2;
    flags.forEach(function (flag) {
      var x = at(flag.x), isLate = x <= WIDTH && x + flag.w > WIDTH, start = isLate ? x - flag.w : x, row = 0;
      while (row < rows && ends[row] > start) row++;
      var fits = row < rows, y = top + row * 15;
      if (fits) ends[row] = isLate ? x + 11 : x + flag.w;
      flag.e.setAttribute('display', fits ? 'inline' : 'none');
      flag.e.setAttribute('text-anchor', isLate ? 'end' : 'start');
      flag.e.setAttribute('x', isLate ? x - 3 : x + 11);
      flag.e.setAttribute('y', y + 9);
      flag.parts[0].setAttribute('y', y);
      flag.parts[1].setAttribute('y1', y); flag.parts[1].setAttribute('y2', poleEnd);
    });
  }
  function element(name, attributes, text) {
    var e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (var key in attributes) e.setAttribute(key, attributes[key]);
    if (text) e.textContent = text;
    axis.appendChild(e);
  }
  var grid = axis.querySelector('line'), y1 = grid ? number(grid, 'y1') : 0, y2 = grid ? number(grid, 'y2') : 0;
  function drawAxis() {
    var shown = span / scale, begin = from + span * left / WIDTH, step = 1;
    for (var power = 1; step < shown / 12; power *= 10) {
      [1, 2, 5].some(function (factor) { step = factor * power; return step >= shown / 12; });
    }
    var end = begin + shown, unit = end >= 1e9 ? [1e9, 's'] : end >= 1e6 ? [1e6, 'ms'] : end >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
    axis.textContent = '';
    for (var place = Math.ceil(begin / step); place * step <= end; place++) {
      var x = (place * step - begin) / shown * WIDTH, name = +(place * step / unit[0]).toFixed(9) + unit[1];
      var anchor = x < 20 ? 'start' : x > WIDTH - 20 ? 'end' : 'middle';
      element('line', { 'class': 'ln-grid', x1: x, x2: x, y1: y1, y2: y2 });
      element('text', { 'class': 'ln-tick', 'text-anchor': anchor, x: x, y: y1 - 3 }, name);
      element('text', { 'class': 'ln-tick', 'text-anchor': anchor, x: x, y: y2 + 13 }, name);
    }
  }
  function draw() {
    pending = false;
    items.forEach(place); placeFlags(); drawAxis();
    var seen = sent.filter(function (item) { return item.x2 >= left && at(item.x) <= WIDTH; }).length;
    var isShown = mode === 1 || (mode === 0 && seen <= +svg.dataset.messages);
    messages.setAttribute('display', isShown ? 'inline' : 'none');
    if (density) density.setAttribute('display', isShown ? 'none' : 'inline');
    if (isShown) sent.forEach(place);
  }
  function show(newScale, newLeft) {
    scale = Math.max(1, Math.min(newScale, span / 1000, 1e6));
    left = Math.max(0, Math.min(newLeft, WIDTH - WIDTH / scale));
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }
  function zoom(factor, x) { var fixed = left + x / scale, next = Math.max(1, scale * factor); show(next, fixed - x / next); }
  function pixel(event) {
    var box = svg.getBoundingClientRect();
    return (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - GUTTER;
  }
  function button(id, action) { document.getElementById(id).addEventListener('click', action); }
  button('ln-in', function () { zoom(2, WIDTH / 2); });
  button('ln-out', function () { zoom(0.5, WIDTH / 2); });
  button('ln-all', function () { show(1, 0); });
  var band = items.find(function (item) { return item.e.classList.contains('ln-band'); });
  if (band) button('ln-spot', function () {
    var width = Math.max(band.w * 3, Math.min(WIDTH, WIDTH * 1e8 / span));
    show(WIDTH / width, band.x + band.w / 2 - width / 2);
  }); else document.getElementById('ln-spot').remove();
  if (sent.length) button('ln-toggle', function () {
    mode = (mode + 1) % 3;
    this.textContent = 'messages: ' + ['when few', 'shown', 'hidden'][mode];
    show(scale, left);
  }); else document.getElementById('ln-toggle').remove();
  document.getElementById('ln-buttons').hidden = false;

  svg.addEventListener('wheel', function (event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), pixel(event));
  }, { passive: false });
  svg.addEventListener('dblclick', function (event) { zoom(3, pixel(event)); });
  var grip = null;
  svg.addEventListener('pointerdown', function (event) { grip = { x: pixel(event), left: left }; });
  window.addEventListener('pointerup', function () { grip = null; plot.classList.remove('ln-moving'); });
  window.addEventListener('pointermove', function (event) {
    if (grip) {
      plot.classList.add('ln-moving');
      show(scale, grip.left - (pixel(event) - grip.x) / scale);
    }
    var over = !grip && event.target.closest && event.target.closest('[data-t]');
    tip.style.display = over ? 'block' : 'none';
    if (!over) return;
    tip.textContent = over.getAttribute('data-t');
    tip.style.left = Math.max(0, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = Math.max(0, Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)) + 'px';
  });
}());
