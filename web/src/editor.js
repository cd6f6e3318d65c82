// Files in tabs, edited. What was changed is kept in the browser.

import { python } from "@codemirror/lang-python";
import { StreamLanguage } from "@codemirror/language";
import { clike } from "@codemirror/legacy-modes/mode/clike";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { setDiagnostics } from "@codemirror/lint";
import { StateEffect, StateField } from "@codemirror/state";
import { oneDark } from "@codemirror/theme-one-dark";
import { Decoration, WidgetType } from "@codemirror/view";
import { basicSetup, EditorView } from "codemirror";

const words = (text) => Object.fromEntries(text.split(" ").map((word) => [word, true]));
const p4 = clike({
  name: "p4",
  keywords: words(
    "abstract action actions apply const control default default_action else entries enum error exit extern false for header header_union if in inout key list " +
      "match_kind out package parser priority return select size state struct switch table transition true tuple type typedef value_set void with",
  ),
  types: words("bit bool int string varbit match_kind packet_in packet_out"),
  atoms: words("accept reject true false"),
});
const stf = StreamLanguage.define({
  name: "stf",
  token(stream) {
    if (stream.match(/#.*/)) return "comment";
    if (stream.sol() && stream.match(/[a-z_]+/)) return "keyword";
    if (stream.match(/(0x)?[0-9a-fA-F*]+\b/)) return "number";
    stream.next();
    return null;
  },
});
const LANGUAGES = { p4: StreamLanguage.define(p4), toml: StreamLanguage.define(toml), py: python(), stf };
const KEPT = "fairlane/";
const dark = matchMedia("(prefers-color-scheme: dark)");
// One Dark's colours on its own grey are fainter than WCAG's contrast of 4.5.
const black = { backgroundColor: "var(--paper)" };
const paper = EditorView.theme({ "&": black, ".cm-gutters": black, ".cm-activeLineGutter": black }, { dark: true });

class Message extends WidgetType {
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) {
    return this.text === other.text;
  }

  toDOM() {
    return Object.assign(document.createElement("div"), { className: "below", textContent: this.text });
  }
}

// Errors, each under its line.
const errors = StateEffect.define();
const below = StateField.define({
  create: () => Decoration.none,
  update: (shown, change) =>
    change.effects.reduce((found, effect) => (effect.is(errors) ? effect.value : found), shown.map(change.changes)),
  provide: (field) => EditorView.decorations.from(field),
});

// file:line:column: kind: text, the line, and a caret below.
function compiled(lines, name, doc) {
  return lines.flatMap((line, index) => {
    const place = line.match(/([^\s/:()]+\.p4):(\d+)(?::(\d+))?: (\w+)/);
    if (!place || place[1] !== name) return [];
    const where = doc.line(Math.min(Number(place[2]), doc.lines));
    const carets =
      lines
        .slice(index + 1, index + 4)
        .join("\n")
        .match(/\^+/)?.[0].length ?? 0;
    const from = carets && place[3] ? Math.min(where.from + Number(place[3]) - 1, where.to) : where.from;
    const to = carets ? Math.min(from + carets, where.to) : where.to;
    return { from, to, severity: place[4] === "warning" ? "warning" : "error", message: line.slice(line.indexOf(place[4])) };
  });
}

// What a packet test expected, what it received, and a caret below the digit that differs (switch/node/stf/src/compare.rs); or file:line: text.
function differing(lines, name, doc) {
  return lines.flatMap((line, index) => {
    const place = line.match(/^port \d+, packet \d+: (.*) \(expected in line (\d+)\)$/);
    const refused = line.match(/^([^\s/:()]+\.stf):(\d+): (.*)/);
    if (refused?.[1] === name) {
      const where = doc.line(Math.min(Number(refused[2]), doc.lines));
      return { from: where.from, to: where.to, severity: "error", message: refused[3] };
    }
    if (!place) return [];
    const where = doc.line(Math.min(Number(place[2]), doc.lines));
    const digit = lines[index + 3].indexOf("^") - lines[index + 1].lastIndexOf(" ") - 1;
    const byte = lines[index + 2].slice(lines[index + 2].lastIndexOf(" ") + 1).substr(digit & ~1, 2);
    // In the editor digits stand in groups.
    const begin = where.text.match(/^\s*expect\s+\S+\s*/)?.[0].length ?? 0;
    const digits = [...where.text.matchAll(/\S/g)].map((found) => found.index).filter((at) => at >= begin);
    const from = where.from + (digits[digit] ?? where.text.length);
    return { from, to: Math.min(from + 1, where.to), severity: "error", message: `${place[1]}: received ${byte || "nothing more"}` };
  });
}

export class Editor {
  #view;
  #tabs;
  #parent;
  #place = "";
  #files = {};
  #changed;
  open = "";

  // changed: called with a file's name and text after it was edited, and when it is shown.
  constructor(tabs, parent, changed) {
    this.#tabs = tabs;
    this.#parent = parent;
    this.#changed = changed;
    dark.addEventListener("change", () => this.open && this.show(this.open));
    tabs.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const names = Object.keys(this.#files);
      this.show(names[(names.indexOf(this.open) + step + names.length) % names.length]);
      tabs.querySelector("[aria-selected=true]").focus();
    };
  }

  // own: the texts that files have before anyone changes them.
  fill(place, own) {
    this.#place = place;
    this.#files = Object.fromEntries(Object.entries(own).map(([name, text]) => [name, { text, own: text }]));
    for (const [name, text] of Object.entries(this.#kept())) {
      this.#files[name] = { text, own: this.#files[name]?.own ?? "" };
    }
    this.show(Object.keys(own)[0]);
  }

  add(name, own) {
    this.#files[name] ??= { text: own, own };
    this.show(name);
  }

  reset() {
    const file = this.#files[this.open];
    if (!file) return;
    file.text = file.own;
    this.#keep();
    this.show(this.open);
  }

  // Another text than its own, as if it had been typed.
  put(name, text) {
    this.#files[name] = { own: this.#files[name]?.own ?? "", text };
    this.#keep();
    this.show(name);
  }

  texts() {
    return Object.fromEntries(Object.entries(this.#files).map(([name, file]) => [name, file.text]));
  }

  changed() {
    return Object.fromEntries(
      Object.entries(this.#files)
        .filter(([, file]) => file.text !== file.own)
        .map(([name, file]) => [name, file.text]),
    );
  }

  show(name) {
    this.open = "";
    this.#view?.destroy();
    const edited = EditorView.updateListener.of((update) => {
      if (!update.docChanged || !this.open) return;
      this.#files[this.open].text = update.state.doc.toString();
      this.#keep();
      this.#draw();
      this.#changed(this.open, this.#files[this.open].text);
    });
    const language = LANGUAGES[name.split(".").pop()];
    const extensions = [
      basicSetup,
      below,
      edited,
      ...(language ? [language] : []),
      ...(language === stf ? [EditorView.lineWrapping] : []),
      ...(dark.matches ? [paper, oneDark] : []),
    ];
    this.#view = new EditorView({ doc: this.#files[name].text, extensions, parent: this.#parent });
    this.#view.contentDOM.setAttribute("aria-label", name);
    this.open = name;
    this.#draw();
    this.#changed(name, this.#files[name].text);
  }

  // Messages at their places: the compiler's, and those of a packet test.
  mark(said, name) {
    if (name !== this.open) return;
    const { doc } = this.#view.state;
    const found = (name.endsWith(".stf") ? differing : compiled)(said.split("\n"), name, doc);
    const under = found
      .filter((one) => one.severity === "error")
      .map((one) => Decoration.widget({ widget: new Message(one.message), block: true, side: 1 }).range(doc.lineAt(one.from).to));
    this.#view.dispatch(setDiagnostics(this.#view.state, found));
    this.#view.dispatch({ effects: errors.of(Decoration.set(under, true)) });
  }

  #draw() {
    const focused = this.#tabs.contains(document.activeElement);
    this.#tabs.replaceChildren(
      ...Object.entries(this.#files).map(([name, file]) => {
        const tab = document.createElement("button");
        tab.role = "tab";
        tab.type = "button";
        tab.textContent = file.text !== file.own ? `${name} *` : name;
        tab.ariaSelected = String(name === this.open);
        tab.tabIndex = name === this.open ? 0 : -1;
        tab.onclick = () => this.show(name);
        return tab;
      }),
    );
    if (focused) this.#tabs.querySelector("[aria-selected=true]")?.focus();
  }

  // A place without a name keeps nothing.
  #keep() {
    if (!this.#place) return;
    try {
      localStorage.setItem(KEPT + this.#place, JSON.stringify(this.changed()));
    } catch {
      // A browser that keeps nothing: the page works without.
    }
  }

  #kept() {
    try {
      return JSON.parse(localStorage.getItem(KEPT + this.#place)) ?? {};
    } catch {
      return {};
    }
  }
}
