//! Keeps the documents true: the reference pages of the book equal what the code says, links into
//! the source lead somewhere, and the two pages that everybody reads first stay short.
//!
//! `UPDATE_BOOK=1 cargo test book` writes the reference pages anew.

mod chat_commands;
mod command_line;
mod config_keys;

use std::path::{Path, PathBuf};

/// A first page is read to its end only if it is short.
const MOST_README_BYTES: usize = 8 * 1024;
const MOST_ARCHITECTURE_BYTES: usize = 10 * 1024;

/// Folders of this repository that documents refer to.
const FOLDERS: [&str; 6] = [
    "src/",
    "docs/",
    "tests/",
    "scripts/",
    "migrations/",
    "benches/",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The page must be what the code says. With `UPDATE_BOOK` set, the page is made so.
fn keep_equal(page: &str, rendered: &str) {
    let path = format!("docs/src/reference/{page}");
    if std::env::var_os("UPDATE_BOOK").is_some() {
        std::fs::write(root().join(&path), rendered).expect("the page can be written");
    }
    assert!(
        read(&path) == rendered,
        "{path} is not what the code says. `UPDATE_BOOK=1 cargo test book` writes it anew."
    );
}

#[test]
fn the_book_has_every_chat_command() {
    keep_equal("chat-commands.md", &chat_commands::page());
}

#[test]
fn the_book_has_every_verb_of_the_command_line() {
    keep_equal("command-line.md", &command_line::page());
}

#[test]
fn the_book_has_every_key_of_the_config() {
    keep_equal("config.md", &config_keys::page());
}

#[test]
fn the_first_pages_are_short() {
    for (page, most) in [
        ("README.md", MOST_README_BYTES),
        ("ARCHITECTURE.md", MOST_ARCHITECTURE_BYTES),
    ] {
        let bytes = read(page).len();
        assert!(
            bytes <= most,
            "{page} has {bytes} bytes; more than {most} belong into the book"
        );
    }
}

/// mdBook leaves out a page that its table of contents does not name, without a word.
#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = read("docs/src/SUMMARY.md");
    for page in pages_of_the_book()
        .iter()
        .filter(|page| !page.ends_with("SUMMARY.md"))
    {
        let link = format!("({})", page.trim_start_matches("docs/src/"));
        assert!(
            contents.contains(&link),
            "docs/src/SUMMARY.md does not name {page}"
        );
    }
}

/// A path that a document names is there, and so is the item that it names in brackets behind the
/// path.
#[test]
fn documents_name_files_and_items_that_exist() {
    let mut documents = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    documents.extend(pages_of_the_book());
    let wrong: Vec<String> = documents
        .iter()
        .flat_map(|page| wrong_references(page, &read(page)))
        .collect();
    assert!(
        wrong.is_empty(),
        "documents refer to what is not there:\n{}",
        wrong.join("\n")
    );
}

fn pages_of_the_book() -> Vec<String> {
    let files = files_below("docs/src").into_iter();
    files.filter(|file| file.ends_with(".md")).collect()
}

/// A file that is named without its folder, because the text around it says which one it is.
fn is_source_file(name: &str) -> bool {
    files_below("src")
        .iter()
        .any(|path| path.ends_with(&format!("/{name}")))
}

fn files_below(folder: &str) -> Vec<String> {
    let (mut files, mut open) = (Vec::new(), vec![PathBuf::from(folder)]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(root().join(&folder))
            .expect("a folder")
            .flatten()
        {
            let path = folder.join(entry.file_name());
            match root().join(&path).is_dir() {
                true => open.push(path),
                false => files.push(path.to_string_lossy().into_owned()),
            }
        }
    }
    files.sort();
    files
}

fn wrong_references(page: &str, text: &str) -> Vec<String> {
    let (mut wrong, mut path, mut in_brackets) = (Vec::new(), "", false);
    for (before, code) in code_spans(text) {
        let before = before.trim();
        let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder));
        if (is_path && !root().join(code).exists())
            || (!is_path && code.ends_with(".rs") && !is_source_file(code))
        {
            wrong.push(format!("{page}: {code}"));
        }
        if is_path {
            (path, in_brackets) = (code, false);
            continue;
        }
        // As in `src/routing/mod.rs` (`route`, `Route`).
        in_brackets = (before == "(" && !path.is_empty()) || (before == "," && in_brackets);
        if in_brackets && root().join(path).is_file() && !read(path).contains(code) {
            wrong.push(format!("{page}: `{code}` in {path}"));
        }
        if !in_brackets {
            path = "";
        }
    }
    wrong
}

/// Inline code outside of code blocks, each with the text between it and the one before.
fn code_spans(text: &str) -> Vec<(&str, &str)> {
    let mut spans = Vec::new();
    for (index, block) in text.split("```").enumerate() {
        if index % 2 == 0 {
            let pieces: Vec<&str> = block.split('`').collect();
            spans.extend(pieces.chunks_exact(2).map(|piece| (piece[0], piece[1])));
        }
    }
    spans
}
