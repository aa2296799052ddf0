//! Which file uses an item of which other file, found by following `use` and paths to where the item is defined.
//!
//! An arrow goes from a file to the file that defines an item that it names. A name that a file only re-exports leads on to the
//! file that defines it. No arrows come from `mod name;`, from test modules, and from re-exports of a file with modules below it, which is
//! only their door (unless its own code uses the name too). Method calls make no arrow: their types do.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{File, Import, imports, shipped_rust, use_items};

/// The words that begin an item with a name.
const ITEMS: &[&str] =
    &["struct", "enum", "union", "trait", "fn", "type", "const", "static", "mod", "macro_rules"];
/// A chain of re-exports that is longer than this is a circle.
const HOPS_MAX: usize = 20;

/// One source file as a module.
struct Module {
    file: String,
    /// The path from the crate root; a crate of its own counts as a room: `["request", "prep"]`, `["jute", "data"]`.
    path: Vec<String>,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
    /// Names inside its braces: methods, and items that macros make.
    inner: BTreeSet<String>,
    imports: Vec<Import>,
    /// Code that ships, without any `use`.
    code: String,
}

pub struct Modules {
    modules: Vec<Module>,
    by_path: BTreeMap<Vec<String>, usize>,
}

impl Modules {
    pub fn new(files: &[File]) -> Self {
        let modules: Vec<Module> = shipped_rust(files).iter().map(Module::new).collect();
        let by_path = modules.iter().enumerate().map(|(at, m)| (m.path.clone(), at)).collect();
        Self { modules, by_path }
    }

    /// The arrows from each file to the files whose items it names, in any room.
    pub fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows = BTreeMap::new();
        for (at, module) in self.modules.iter().enumerate() {
            let mut to: BTreeSet<&str> =
                self.named(at).map(|other| &*self.modules[other].file).collect();
            to.remove(&*module.file);
            arrows.insert(&*module.file, to);
        }
        arrows
    }

    fn named(&self, at: usize) -> impl Iterator<Item = usize> {
        let module = &self.modules[at];
        let inline = inline_paths(&module.code);
        let is_child = |other: &Module| {
            other.path.split_last().is_some_and(|(_, parent)| parent == module.path)
        };
        let is_door = self.modules.iter().any(is_child);
        let is_declaration = |line: &&str| line.contains("mod ") && line.ends_with(';');
        let own_code = module.code.lines().filter(|line| !is_declaration(line));
        let words: BTreeSet<&str> = own_code.flat_map(|line| line.split(|c| !is_word(c))).collect();
        let only_shown =
            move |import: &&Import| is_door && import.is_public && !words.contains(&*import.name);
        let used = module.imports.iter().filter(move |import| !only_shown(import));
        let used = used.map(|import| import.path.clone());
        used.chain(inline).filter_map(move |path| self.find(at, &path, HOPS_MAX))
    }

    /// The module that defines the item that `path` means inside module `at`; `None` for items of other crates.
    fn find(&self, at: usize, path: &str, hops: usize) -> Option<usize> {
        let mut parts = path.split("::").map(str::trim).peekable();
        let own = &self.modules[at].path;
        let mut here: Vec<String> = match *parts.peek()? {
            "crate" if own.first().is_some_and(|first| first == "jute") => vec!["jute".into()],
            "crate" | "oxkeeper" => Vec::new(),
            "self" | "super" => own.clone(),
            "jute" => vec!["jute".into()],
            name => return self.find_in(at, name, parts.skip(1), hops),
        };
        if parts.next() == Some("super") {
            here.pop();
        }
        while parts.next_if_eq(&"super").is_some() {
            here.pop();
        }
        self.walk(here, parts, hops)
    }

    /// Follows the rest of a path from a known module.
    fn walk<'p>(
        &self,
        mut here: Vec<String>,
        mut parts: impl Iterator<Item = &'p str>,
        hops: usize,
    ) -> Option<usize> {
        let Some(name) = parts.next() else { return self.by_path.get(&here).copied() };
        if let Some(at) = self.by_path.get(&here) {
            return self.find_in(*at, name, parts, hops);
        }
        here.push(name.to_owned()); // Below the crate root, which has no file among the rooms.
        let at = *self.by_path.get(&here)?;
        let rest: Vec<&str> = parts.collect();
        rest.first()
            .map_or(Some(at), |name| self.find_in(at, name, rest[1..].iter().copied(), hops))
    }

    /// The module that defines `name`, with the rest of the path after it, inside module `at`.
    fn find_in<'p>(
        &self,
        at: usize,
        name: &str,
        parts: impl Iterator<Item = &'p str>,
        hops: usize,
    ) -> Option<usize> {
        let module = &self.modules[at];
        let child: Vec<String> = module.path.iter().cloned().chain([name.to_owned()]).collect();
        if self.by_path.contains_key(&child) {
            let rest: Vec<&str> = parts.collect();
            return self.walk(child, &mut rest.into_iter() as &mut dyn Iterator<Item = &str>, hops);
        }
        if module.items.contains(name) || name == "*" {
            return Some(at);
        }
        let Some(import) = module.imports.iter().find(|import| import.name == name) else {
            return module.inner.contains(name).then_some(at);
        };
        let rest: String = parts.map(|part| format!("::{part}")).collect();
        self.find(at, &format!("{}{rest}", import.path), hops.checked_sub(1)?)
    }
}

impl Module {
    fn new(file: &File) -> Self {
        let shipped = file.shipped();
        let mut code = shipped.clone();
        for (from, to) in use_items(&shipped) {
            code.replace_range(from..to, &" ".repeat(to - from));
        }
        let (items, inner) = items(&code);
        Self {
            file: file.path.clone(),
            path: module_path(&file.path),
            items,
            inner,
            imports: imports(&shipped),
            code,
        }
    }
}

fn module_path(file: &str) -> Vec<String> {
    let inside = file.strip_prefix("src/").or(file.strip_prefix("jute/src/")).unwrap_or(file);
    let inside = inside.trim_end_matches(".rs");
    let inside = match inside.rsplit_once('/') {
        Some((folder, "mod")) => folder,
        _ if inside == "lib" && file.starts_with("jute/") => "",
        _ => inside,
    };
    let crate_name = file.starts_with("jute/").then_some("jute");
    crate_name
        .into_iter()
        .chain(inside.split('/').filter(|part| !part.is_empty()))
        .map(str::to_owned)
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Names that the code defines: those of the file itself, and those inside braces (methods, and items that macros make).
fn items(code: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut own, mut inner) = (BTreeSet::new(), BTreeSet::new());
    let mut depth = 0;
    let mut after_item = false;
    for word in code.split_inclusive(|c| !is_word(c)) {
        let name = word.trim_end_matches(|c| !is_word(c));
        if !name.is_empty() {
            if after_item {
                let names = if depth == 0 { &mut own } else { &mut inner };
                names.insert(name.to_owned());
            }
            after_item = ITEMS.contains(&name);
        }
        match word.bytes().last() {
            Some(b'{') => depth += 1,
            Some(b'}') => depth -= 1,
            _ => {}
        }
    }
    (own, inner)
}

/// Every path of two names or more.
fn inline_paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let whole = |c: char| is_word(c) || c == ':';
    for chunk in code.split(|c| !whole(c)) {
        let path = chunk.trim_matches(':');
        if path.contains("::") && !chunk.starts_with("::") {
            found.push(
                path.split("::").take_while(|part| !part.is_empty()).collect::<Vec<_>>().join("::"),
            );
        }
    }
    found
}

#[cfg(test)]
fn arrows_of(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
    let modules = Modules::new(&files);
    let pairs = modules
        .arrows()
        .into_iter()
        .flat_map(|(from, to)| to.into_iter().map(move |to| (from.to_owned(), to.to_owned())));
    let short = |path: String| path.trim_start_matches("src/").to_owned();
    pairs.map(|(from, to)| (short(from), short(to))).collect()
}

#[test]
fn arrow_leads_to_the_file_that_defines_the_item() {
    let door = "mod a;\nmod b;\npub mod c;\npub use a::{Alpha, Beta as Renamed};\nuse b::Low;\n\
                struct Own(Low);\npub use c::Gamma;";
    let room = |text| {
        let files = [
            ("src/tree/mod.rs", door),
            ("src/tree/a.rs", "pub struct Alpha; pub enum Beta { One }"),
            ("src/tree/b.rs", "pub const fn low() {} pub struct Low;"),
            ("src/tree/c.rs", text),
            ("src/store/x.rs", "use crate::tree::{Alpha, Gamma};"),
        ];
        let from_c = |(from, to): (String, String)| (from == "tree/c.rs").then_some(to);
        arrows_of(&files).into_iter().filter_map(from_c).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(room("use super::a::Alpha;"), "tree/a.rs");
    assert_eq!(room("use super::Renamed;"), "tree/a.rs", "through the door");
    assert_eq!(room("use super::{Own, b};"), "tree/b.rs tree/mod.rs");
    assert_eq!(room("use super::Low;"), "tree/b.rs", "an import of the parent");
    assert_eq!(room("fn f() { super::b::low(); }"), "tree/b.rs");
    assert_eq!(room("use crate::tree; fn f(a: tree::Own) {}"), "tree/mod.rs");
    assert_eq!(room("use super::Renamed; fn f() { Renamed::One; }"), "tree/a.rs");
    let method = "use super::b; impl Gamma { fn b(&self) { b::low() } }";
    assert_eq!(room(method), "tree/b.rs", "a method of that name is another thing");
    assert_eq!(room("pub struct Gamma; fn f() { std::mem::drop(Gamma) }"), "");
    assert_eq!(room("#[cfg(test)]\nmod tests { use super::super::Own; }"), "");
}

#[test]
fn door_of_a_room_has_no_arrows() {
    let of =
        |door: &str| arrows_of(&[("src/tree/mod.rs", door), ("src/tree/a.rs", "pub struct A;")]);
    assert_eq!(of("mod a; pub use a::A;"), []);
    let arrow = [("tree/mod.rs".to_owned(), "tree/a.rs".to_owned())];
    assert_eq!(of("mod a; use a::A;"), arrow);
    assert_eq!(of("mod a; pub use a::A; struct Own { a: A }"), arrow, "its own code uses it");
}
