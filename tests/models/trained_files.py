"""Files of many types for a detector of types: templates of ours with names and numbers from a seed, and containers that Python writes."""

import gzip
import io
import sqlite3
import tarfile
import zipfile

import numpy as np

import trained_inputs

TEXTS = {
    "python": """import os\nimport sys\n\n\nclass {A}:\n    def __init__(self, {b}, {c}={n}):\n        self.{b} = {b}\n        self.{c} = {c}\n
    def {d}(self):\n        for index in range(self.{c}):\n            if index % 2 == 0:\n                print(f"{{index}}: {{self.{b}}}")
        return os.path.join(self.{b}, "{c}")\n\n\nif __name__ == "__main__":\n    {A}(sys.argv[1]).{d}()\n""",
    "c": """#include <stdio.h>\n#include <stdlib.h>\n\nstruct {b} {{\n    int {c};\n    struct {b} *next;\n}};\n
static int {d}(const struct {b} *first) {{\n    int sum = {n};\n    while (first != NULL) {{\n        sum += first->{c};\n        first = first->next;
    }}\n    return sum;\n}}\n\nint main(int argc, char **argv) {{\n    struct {b} one = {{ atoi(argv[1]), NULL }};
    printf("%d\\n", {d}(&one));\n    return 0;\n}}\n""",
    "cpp": """#include <iostream>\n#include <string>\n#include <vector>\n\nnamespace {b} {{\ntemplate <typename T> class {A} {{\npublic:
    explicit {A}(std::vector<T> values) : {c}(std::move(values)) {{}}\n    T {d}() const {{\n        T sum{{}};
        for (const auto &value : {c})\n            sum += value;\n        return sum;\n    }}\nprivate:\n    std::vector<T> {c};\n}};\n}}\n
int main() {{\n    {b}::{A}<int> one({{1, 2, {n}}});\n    std::cout << one.{d}() << std::endl;\n}}\n""",
    "java": """package org.example.{b};\n\nimport java.util.ArrayList;\nimport java.util.List;\n\npublic class {A} {{
    private final List<String> {c} = new ArrayList<>();\n\n    public void {d}(String value) {{\n        if (value == null) {{
            throw new IllegalArgumentException("{d}");\n        }}\n        {c}.add(value);\n    }}\n
    public static void main(String[] args) {{\n        {A} one = new {A}();\n        one.{d}(args[0]);
        System.out.println(one.{c}.size() + {n});\n    }}\n}}\n""",
    "javascript": """'use strict';\n\nconst fs = require('fs');\n\nfunction {d}({b}, callback) {{\n  fs.readFile({b}, 'utf8', (err, data) => {{
    if (err) {{\n      return callback(err);\n    }}\n    const {c} = data.split('\\n').filter((line) => line.length > {n});
    callback(null, {c});\n  }});\n}}\n\nmodule.exports = {{ {d} }};\n""",
    "rust": """use std::collections::HashMap;\n\n#[derive(Debug, Clone)]\npub struct {A} {{\n    {b}: HashMap<String, u32>,\n}}\n
impl {A} {{\n    pub fn new() -> Self {{\n        Self {{ {b}: HashMap::new() }}\n    }}\n
    pub fn {d}(&mut self, {c}: &str) -> Option<u32> {{\n        let count = self.{b}.entry({c}.to_string()).or_insert({n});
        *count += 1;\n        Some(*count)\n    }}\n}}\n\nfn main() {{\n    let mut one = {A}::new();
    println!("{{:?}}", one.{d}("{c}"));\n}}\n""",
    "go": """package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\ntype {A} struct {{\n\t{b} string\n\t{c} int\n}}\n
func (t *{A}) {d}() error {{\n\tif t.{c} > {n} {{\n\t\treturn fmt.Errorf("too many: %d", t.{c})\n\t}}\n\treturn nil\n}}\n
func main() {{\n\tone := &{A}{{"{b}", len(os.Args)}}\n\tif err := one.{d}(); err != nil {{\n\t\tfmt.Println(err)\n\t}}\n}}\n""",
    "shell": """#!/bin/bash\nset -euo pipefail\n\n{b}="${{1:-/tmp/{c}}}"\n\n{d}() {{\n  local file\n  for file in "$@"; do
    if [ -f "$file" ]; then
      cp "$file" "${b}/" || echo "cannot copy $file" >&2\n    fi\n  done\n}}\n\nmkdir -p "${b}"\n{d} *.txt\nexit {n}\n""",
    "html": """<!DOCTYPE html>\n<html lang="en">\n<head>\n  <meta charset="utf-8">\n  <title>{A}</title>\n  <link rel="stylesheet" href="{b}.css">
</head>\n<body>\n  <h1>{A}</h1>\n  <p>The {b} of the {c} costs {n}.</p>\n  <ul>\n    <li><a href="/{c}">{c}</a></li>\n    <li>{d}</li>\n  </ul>
</body>\n</html>\n""",
    "css": """body {{\n  margin: 0;\n  font-family: sans-serif;\n}}\n\n.{b} > .{c} {{\n  display: flex;\n  padding: {n}px;\n  color: #336699;\n}}
\n@media (max-width: 600px) {{\n  .{d}:hover {{\n    background-color: rgba(0, 0, 0, 0.5);\n  }}\n}}\n""",
    "json": """{{\n  "{b}": {{\n    "{c}": [1, 2, {n}],\n    "name": "{A}",\n    "active": true\n  }},\n  "{d}": null,\n  "ratio": 0.25\n}}\n""",
    "xml": """<?xml version="1.0" encoding="UTF-8"?>\n<{b}>\n  <{c} id="{n}">\n    <name>{A}</name>\n    <price currency="EUR">12.50</price>\n  </{c}>
  <{c} id="2">\n    <name>{d}</name>\n  </{c}>\n</{b}>\n""",
    "yaml": """version: "3"\nservices:\n  {b}:\n    image: {c}:{n}\n    ports:\n      - "8080:80"\n    environment:\n      - NAME={A}\n  {d}:
    depends_on:\n      - {b}\n    restart: always\n""",
    "ini": """[{b}]\nname = {A}\nport = {n}\nenabled = true\n\n[{c}]\npath = /var/lib/{d}\ntimeout = 30\n; the last of them\nlevel = debug\n""",
    "markdown": """# {A}\n\nA small *{b}* for **{c}**.\n\n## Install\n\n```sh\nmake {d}\n```\n\n- one [link](https://example.org/{b})
- two `{c}`\n\n1. first\n2. second\n\n> It costs {n}.\n""",
    "sql": """CREATE TABLE {b} (\n    id INTEGER PRIMARY KEY,\n    {c} VARCHAR({n}) NOT NULL,\n    created TIMESTAMP DEFAULT CURRENT_TIMESTAMP\n);\n
INSERT INTO {b} (id, {c}) VALUES (1, '{A}'), (2, '{d}');\n\nSELECT {c}, COUNT(*) FROM {b} WHERE id > 1 GROUP BY {c} ORDER BY {c};\n""",
    "makefile": """CC = gcc\nCFLAGS = -O2 -Wall\nOBJS = {b}.o {c}.o\n\nall: {d}\n\n{d}: $(OBJS)\n\t$(CC) $(CFLAGS) -o $@ $^\n
%.o: %.c\n\t$(CC) $(CFLAGS) -c $<\n\n.PHONY: clean\nclean:\n\trm -f $(OBJS) {d}\n""",
    "dockerfile": """FROM debian:12\n\nRUN apt-get update && apt-get install -y {b} {c} \\\n    && rm -rf /var/lib/apt/lists/*\n
WORKDIR /{d}\nCOPY . .\nENV PORT={n}\nEXPOSE {n}\nENTRYPOINT ["/{d}/{b}"]\nCMD ["--help"]\n""",
    "php": """<?php\n\nnamespace {A}\\Model;\n\nclass {A}\n{{\n    private $items = [];\n\n    public function {d}($name, $count = {n})\n    {{
        $this->items[$name] = $count;\n        foreach ($this->items as $key => $value) {{
            echo $key . ': ' . $value . PHP_EOL;\n        }}
        return $this;\n    }}\n}}\n\n$one = new {A}();\n$one->{d}('{c}');\n""",
    "ruby": """require 'json'\n\nmodule {A}\n  class Reader\n    attr_reader :{b}\n\n    def initialize({b})\n      @{b} = {b}\n    end\n
    def {d}\n      @{b}.each_with_index do |item, index|\n        puts "#{{index}}: #{{item}}" unless item.nil?\n      end\n    end\n  end\nend\n
{A}::Reader.new([1, 2, {n}]).{d}\n""",
    "lua": """local {A} = {{}}\n{A}.__index = {A}\n\nfunction {A}.new({b})\n  local self = setmetatable({{}}, {A})
  self.{b} = {b} or {n}\n  return self\nend\n
function {A}:{d}()\n  for i = 1, self.{b} do\n    print(i .. ": " .. tostring(i % 2 == 0))\n  end\nend\n\nreturn {A}\n""",
    "csv": "id,{b},{c},{d}\n" + "".join(f"{row},{{b}}{row},{{n}}.{row},2024-01-{10 + row}\n" for row in range(12)),
    "plain": "The {b} stood beside the {c} for {n} years. Nobody knew who had put it there, and when the {d} was sold\nit went with the house. "
    "On Sundays people came to look at it, and some of them left a coin.\n",
}


def container(kind, texts, seed):
    """A file that holds others, or is no text."""
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name + ".txt", (2024, 1, 2, 3, 4, 6)), text)
    elif kind == "tar":
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, text in texts.items():
                entry = tarfile.TarInfo(name + ".txt")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
    elif kind == "gzip":
        file.write(gzip.compress("".join(texts.values()).encode(), mtime=0))
    elif kind == "wav":
        file.write(trained_inputs.wave(trained_inputs.speech(seed, 2.0), trained_inputs.RATE))
    elif kind == "png":
        file.write(trained_inputs.png(seed))
    elif kind == "sqlite":
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT)")
        base.executemany("INSERT INTO words (text) VALUES (?)", [(text,) for text in texts.values()])
        base.commit()
        file.write(base.serialize())
    return file.getvalue()


def files(seed=1):
    """{name: bytes}, one of each type."""
    random = np.random.default_rng(seed)
    texts = {}
    for kind, template in TEXTS.items():
        a, b, c, d = random.choice(trained_inputs.WORDS, 4, replace=False)
        texts[kind] = template.format(A=a.title(), b=b, c=c, d=d, n=random.integers(3, 90))
    result = {kind: text.encode() for kind, text in texts.items()}
    return result | {kind: container(kind, texts, seed) for kind in ("zip", "tar", "gzip", "wav", "png", "sqlite")}
