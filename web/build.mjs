// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into one HTML file, and that into a C file that the program links: node build.mjs [OUT.c]
// Without OUT.c the page is printed. The page's policy allows the script and the style with these hashes, and nothing else;
// the program fills in what it may connect to: nothing, or the server that it came from.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

async function bundle(entry) {
    const made = await build({
        entryPoints: [at(entry)],
        absWorkingDir: at("."),
        bundle: true,
        minify: true,
        charset: "utf8",
        format: "iife",
        target: ["chrome100", "firefox100", "safari15.4"],
        legalComments: "none",
        write: false,
    });
    return made.outputFiles[0].text.trim();
}

const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle("src/page.ts");
const style = await bundle("src/page.css");
for (const text of [script, style])
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error("the bundle would end its own element");

const restricted = (connect) =>
    `default-src 'none'; script-src ${hashed(script)}; style-src ${hashed(style)}; connect-src ${connect}; base-uri 'none'; form-action 'none'`;
const page = readFileSync(at("src/page.html"), "utf8")
    .replace("@POLICY@", () => restricted("@SHMGUARD_CONNECT@"))
    .replace("@STYLE@", () => style)
    .replace("@SCRIPT@", () => script);

const out = process.argv[2];
if (!out) {
    process.stdout.write(page);
} else {
    const bytes = Buffer.from(page, "utf8");
    const lines = [];
    for (let i = 0; i < bytes.length; i += 24) lines.push([...bytes.subarray(i, i + 24)].map((b) => (b > 127 ? b - 256 : b)).join(","));
    writeFileSync(out, `#include "page.h"\nconst char page_template[] = {\n${lines.join(",\n")},0};\n` + `const size_t page_template_size = sizeof page_template - 1;\nconst char page_policy[] = "${restricted("'self'")}; frame-ancestors 'none'";\n`);
}
