
(() => {
  const channel = (v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const under = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (e) => {
    const pair = [light(getComputedStyle(e).color), light(under(e))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const texts = "p, td, th, a, h1, h2, summary span, code, button, .lines td, mark";
  return [...document.querySelectorAll(texts)]
    .filter((e) => e.textContent.trim() && e.offsetParent)
    .map((e) => [ratio(e), `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`])
    .sort((a, b) => a[0] - b[0])[0];
})()
