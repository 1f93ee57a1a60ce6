// SPDX-License-Identifier: Apache-2.0
// Makes elements from text alone, so that nothing in a recording is ever read as markup.

type Child = Node | string | null;

export function make<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, string> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null));
    return element;
}

export function byId<T extends HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`the page has no #${id}`);
    return element as T;
}

// A table that scrolls sideways by itself, so that the page never has to.
export function table(caption: string, heads: string[], rows: Child[][], numbersFrom: number): HTMLElement {
    const cell = (tag: "td" | "th", child: Child, column: number) =>
        make(tag, { ...(column >= numbersFrom ? { class: "number" } : {}), ...(tag === "th" ? { scope: "col" } : {}) }, child);
    return make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
        make(
            "table",
            {},
            make("caption", {}, caption),
            make("thead", {}, make("tr", {}, ...heads.map((head, column) => cell("th", head, column)))),
            make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((child, column) => cell("td", child, column))))),
        ),
    );
}
