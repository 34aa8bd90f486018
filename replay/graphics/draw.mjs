// Draws cards in one browser. Runs inside the sandbox: node draw.mjs JOB OUT/ MODULES BROWSER ENCODER FONT...
//
// Owns the page's life: it is served from memory under a name that resolves nowhere, every request for anything else is refused
// and reported, scripts of the page never run, slot texts are set as text nodes. Time is set, never waited for.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [jobFile, out, modules, browserPath, program, ...fonts] = process.argv.slice(2);
const given = dirname(jobFile);
const job = JSON.parse(readFileSync(jobFile, "utf8"));
const places = Object.fromEntries(job.fonts.map((name, n) => [name, fonts[n]]));
const { default: puppeteer } = await import(`${modules}/puppeteer-core/lib/puppeteer/puppeteer-core.js`);

const ORIGIN = "http://card.invalid/";
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; font-src 'self'; base-uri 'none'; form-action 'none'; sandbox allow-same-origin";
const TYPES = { html: "text/html; charset=utf-8", woff2: "font/woff2" };

const browser = await puppeteer.launch({
  executablePath: browserPath,
  headless: true,
  pipe: true,
  defaultViewport: null,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-gpu-compositing", "--hide-scrollbars", "--mute-audio", "--no-zygote",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb", "--force-device-scale-factor=1",
    "--font-render-hinting=none", "--disable-lcd-text", "--disable-font-subpixel-positioning=false",
    "--deterministic-mode", "--enable-begin-frame-control", "--disable-new-content-rendering-timeout",
    "--run-all-compositor-stages-before-draw", "--disable-threaded-animation", "--disable-threaded-scrolling",
    "--disable-checker-imaging", "--disable-image-animation-resync", "--enable-surface-synchronization",
    "--disable-features=Translate,MediaRouter,OptimizationHints",
  ],
});

// Puts the texts in and stops every animation; a stop counts when it is no longer pending. Returns when the last one ends, in ms.
function prepare(texts) {
  for (const node of document.querySelectorAll("[data-var-text]")) node.textContent = texts[node.dataset.varText] ?? "";
  const moving = (window.moving = document.getAnimations());
  for (const motion of moving) motion.pause();
  return Math.max(0, ...moving.map((motion) => Number(motion.effect.getComputedTiming().endTime)));
}

function seek(ms) {
  for (const motion of window.moving) motion.currentTime = ms;
}

// Where every text stands: the box its glyph lines take, and the box it may take.
function measure() {
  return [...document.querySelectorAll("[data-var-text]")].map((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((r) => r.width > 0 && r.height > 0);
    const left = Math.min(...lines.map((r) => r.left)), right = Math.max(...lines.map((r) => r.right));
    const top = Math.min(...lines.map((r) => r.top)), bottom = Math.max(...lines.map((r) => r.bottom));
    const cut = [];
    for (let up = node.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflow === "visible" && up.id !== "card") continue;
      const r = up.getBoundingClientRect();
      if (left < r.left - 1 || right > r.right + 1 || top < r.top - 1 || bottom > r.bottom + 1) cut.push(up.className || up.id);
    }
    const style = getComputedStyle(node);
    return {
      slot: node.dataset.varText, text: node.textContent, left, top, right, bottom, lines: new Set(lines.map((r) => Math.round(r.bottom))).size,
      size: parseFloat(style.fontSize), weight: Number(style.fontWeight), cut,
    };
  });
}

async function draw(card) {
  const page = await browser.newPage();
  const refused = [];
  page.on("request", (request) => {
    const url = request.url();
    const name = url.startsWith(ORIGIN) ? url.slice(ORIGIN.length) : "";
    if (request.method() !== "GET" || !card.files.includes(name)) {
      refused.push(url.slice(0, 200));
      return request.abort("blockedbyclient");
    }
    return request.respond({
      status: 200,
      contentType: TYPES[name.split(".").pop()],
      headers: { "content-security-policy": POLICY },
      body: readFileSync(places[`${card.name}/${name}`] ?? `${given}/${card.name}/${name}`),
    });
  });
  page.on("dialog", (dialog) => dialog.dismiss());
  await page.setRequestInterception(true);
  await page.setViewport({ width: card.width, height: card.height, deviceScaleFactor: 1 });
  const client = await page.createCDPSession();
  await client.send("HeadlessExperimental.enable");
  let ticks = 1000;
  async function frame(screenshot) {
    for (let attempt = 0; attempt < 20; attempt++) {
      ticks += 20;
      const done = await client.send("HeadlessExperimental.beginFrame", {
        frameTimeTicks: ticks, interval: 20, ...(screenshot ? { screenshot } : { noDisplayUpdates: true }),
      });
      if (!screenshot) return null;
      if (done.screenshotData) return Buffer.from(done.screenshotData, "base64");
    }
    throw new Error("the browser gives no picture");
  }
  await page.goto(`${ORIGIN}index.html`, { waitUntil: "domcontentloaded", timeout: 30000 });
  const endMs = await page.evaluate(prepare, card.texts);
  const started = performance.now();
  for (let settled = false; !settled; await sleep(2)) {
    if (performance.now() - started > 60000) throw new Error(`a font does not load; refused: ${refused.join(" ") || "nothing"}`);
    await frame(null);
    settled = await page.evaluate(() => window.moving.every((m) => !m.pending) && document.fonts.status === "loaded" && [...document.fonts].every((f) => f.status !== "loading" && f.status !== "error"));
  }
  await page.evaluate(seek, endMs);
  await frame(null);
  const boxes = await page.evaluate(measure);
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  const report = { name: card.name, end_ms: endMs, boxes, elements, title: await page.title(), refused, drawn: 0 };
  for (const [n, ms] of card.stills.entries()) {
    await page.evaluate(seek, ms);
    await frame(null);
    writeFileSync(`${out}${card.name}-${n}.png`, await frame({ format: "png", optimizeForSpeed: true }));
  }
  if (card.encode) {
    const [num, den] = card.rate;
    const moving = Math.min(card.frames, Math.ceil((endMs * num) / (1000 * den)) + 1);
    const encoder = spawn(program, [...card.encode, `${out}${card.name}.mp4`], { stdio: ["pipe", "ignore", "pipe"] });
    let said = "";
    encoder.stderr.on("data", (bytes) => { said = (said + bytes).slice(-2000); });
    encoder.stdin.on("error", () => {});
    const ended = once(encoder, "close");
    for (let n = 0; n < moving; n++) {
      await page.evaluate(seek, (n * 1000 * den) / num);
      await frame(null);
      const picture = await frame({ format: "jpeg", quality: job.quality, optimizeForSpeed: true });
      if (!encoder.stdin.write(picture)) await Promise.race([once(encoder.stdin, "drain"), ended]);
    }
    encoder.stdin.end();
    report.drawn = moving;
    report.ended = ended.then(([code]) => { if (code !== 0) throw new Error(`the encoder ended with ${code}: ${said}`); });
    report.ended.catch(() => {});
  }
  await page.close();
  return report;
}

const reports = [];
for (const card of job.cards) reports.push(await draw(card));
for (const report of reports) { await report.ended; delete report.ended; }
writeFileSync(`${out}report.json`, JSON.stringify({ browser: await browser.version(), cards: reports }));
await browser.close();
process.exit(0);
