//! What a person sees in Telegram, construct by construct.

use insta::assert_snapshot;

use super::{Entity, EntityKind, Rendered, render};

/// Text and entities, each with the stretch it covers. Parts are separated by a line.
fn show(markdown: &str) -> String {
    show_parts(&render(markdown))
}

pub(super) fn show_parts(parts: &[Rendered]) -> String {
    let parts: Vec<String> = parts.iter().map(show_part).collect();
    parts.join("\n=====\n")
}

fn show_part(part: &Rendered) -> String {
    let entities = part
        .entities
        .iter()
        .map(|entity| show_entity(entity, &part.text));
    std::iter::once(part.text.clone())
        .chain(entities)
        .collect::<Vec<_>>()
        .join("\n")
}

fn show_entity(entity: &Entity, text: &str) -> String {
    let kind = match &entity.kind {
        EntityKind::Bold => "bold".to_owned(),
        EntityKind::Italic => "italic".to_owned(),
        EntityKind::Strikethrough => "strikethrough".to_owned(),
        EntityKind::Spoiler => "spoiler".to_owned(),
        EntityKind::Code => "code".to_owned(),
        EntityKind::Pre { language: None } => "pre".to_owned(),
        EntityKind::Pre {
            language: Some(language),
        } => format!("pre({language})"),
        EntityKind::TextLink { url } => format!("text_link({url})"),
        EntityKind::Blockquote => "blockquote".to_owned(),
    };
    let units: Vec<u16> = text
        .encode_utf16()
        .skip(entity.offset)
        .take(entity.length)
        .collect();
    let covered = String::from_utf16(&units).expect("entities keep surrogate pairs together");
    format!(
        "- {kind} {}..{} {covered:?}",
        entity.offset,
        entity.offset + entity.length
    )
}

#[test]
fn plain_text_stays_as_it_is() {
    assert_snapshot!(show("Good morning. It is 7 °C (44.6 °F); 3 < 4 & 5 > 4!\nSee you_later_alligator."), @"
    Good morning. It is 7 °C (44.6 °F); 3 < 4 & 5 > 4!
    See you_later_alligator.
    ");
    assert_snapshot!(show("Costs ~5 to ~10 EUR, 2 * 3 * 4 = 24, C:\\dir, a || b || c, [todo], #topic, $x$"), @r"Costs ~5 to ~10 EUR, 2 * 3 * 4 = 24, C:\dir, a || b || c, [todo], #topic, $x$");
}

#[test]
fn nothing_to_see_makes_no_message() {
    assert!(render("").is_empty());
    assert!(render(" \n\t\r\n ").is_empty());
    assert!(render("\u{200b}\u{feff}").is_empty());
}

#[test]
fn syntax_around_nothing_is_text() {
    assert_snapshot!(show("#"), @r##"
    #
    - bold 0..1 "#"
    "##);
    assert_snapshot!(show("a\n\n##\n\nb"), @r###"
    a

    ##

    b
    - bold 3..5 "##"
    "###);
    assert_snapshot!(show("```rust\n```"), @"
    ```rust
    ```
    ");
    assert_snapshot!(show("[]()"), @"[]()");
    assert_snapshot!(show(">"), @">");
    assert_snapshot!(show("-"), @"•");
}

#[test]
fn headings_are_bold_lines_with_room_around() {
    assert_snapshot!(show("Intro\n# Weather\nSunny.\n## In *the* **north**\n\n\nRain.\n\nSetext\n===\nend"), @r#"
    Intro

    Weather

    Sunny.

    In the north

    Rain.

    Setext

    end
    - bold 7..14 "Weather"
    - bold 24..36 "In the north"
    - italic 27..30 "the"
    - bold 45..51 "Setext"
    "#);
}

#[test]
fn paragraphs_and_breaks() {
    assert_snapshot!(show("one\ntwo  \nthree\\\nfour\n\n\n\nfive\r\nsix\r\n\r\nseven"), @"
    one
    two
    three
    four

    five
    six

    seven
    ");
}

#[test]
fn emphasis_nests() {
    assert_snapshot!(show("**bold *and italic* ~~gone~~** __b__ _i_ ***both***"), @r#"
    bold and italic gone b i both
    - bold 0..20 "bold and italic gone"
    - italic 5..15 "and italic"
    - strikethrough 16..20 "gone"
    - bold 21..22 "b"
    - italic 23..24 "i"
    - bold 25..29 "both"
    - italic 25..29 "both"
    "#);
    assert_snapshot!(show("**outer **inner** outer**"), @r#"
    outer inner outer
    - bold 0..17 "outer inner outer"
    "#);
}

#[test]
fn sums_keep_their_stars() {
    assert_snapshot!(show("2*3*4 = 24, x**2 + y**2, f(*args), https://example.com/a*b*c"), @"2*3*4 = 24, x**2 + y**2, f(*args), https://example.com/a*b*c");
    assert_snapshot!(show("**2*3*4** and *5*6 = 30* and **H**yper**T**ext"), @r#"
    2*3*4 and 5*6 = 30 and HyperText
    - bold 0..5 "2*3*4"
    - italic 10..18 "5*6 = 30"
    - bold 23..24 "H"
    - bold 28..29 "T"
    "#);
}

#[test]
fn escapes_and_character_references_are_resolved() {
    assert_snapshot!(show(r"\*not bold\* &amp; &lt;tag&gt; &copy; 1\. \_x\_"), @"*not bold* & <tag> © 1. _x_");
}

#[test]
fn styles_make_way_for_code() {
    assert_snapshot!(show("**run `cargo test` now** and `a || b`, ~~*`x`*~~"), @r#"
    run cargo test now and a || b, x
    - bold 0..4 "run "
    - code 4..14 "cargo test"
    - bold 14..18 " now"
    - code 23..29 "a || b"
    - code 31..32 "x"
    "#);
    assert_snapshot!(show("**`a` `b`**"), @r#"
    a b
    - code 0..1 "a"
    - code 2..3 "b"
    "#);
}

#[test]
fn spoilers_hide_what_their_marks_touch() {
    assert_snapshot!(show("He is ||the **killer** of `x` and||, not || this || or ||that"), @r#"
    He is the killer of x and, not || this || or ||that
    - spoiler 6..25 "the killer of x and"
    - bold 10..16 "killer"
    "#);
    assert_snapshot!(show("||`x`||, `a` ||b `c` `d`|| `e` and ||```f```||"), @r#"
    x, a b c d e and f
    - spoiler 0..1 "x"
    - code 3..4 "a"
    - spoiler 5..10 "b c d"
    - code 11..12 "e"
    - spoiler 17..18 "f"
    "#);
    assert_snapshot!(show("||a|| ||b|| **||c||** ||*d*||"), @r#"
    a b c d
    - spoiler 0..1 "a"
    - spoiler 2..3 "b"
    - bold 4..5 "c"
    - spoiler 4..5 "c"
    - italic 6..7 "d"
    - spoiler 6..7 "d"
    "#);
    assert_snapshot!(show(r"\||no|| and |||| and \|\|no\|\|"), @"||no|| and |||| and ||no||");
    assert_snapshot!(show("**a ||b** c||, ||one\n\ntwo||"), @r#"
    a ||b c||, ||one

    two||
    - bold 0..5 "a ||b"
    "#);
    assert_snapshot!(show("- ||two\n  lines||\n- ||x\n  - y||"), @r#"
    • two
      lines
    • ||x
      ◦ y||
    - spoiler 2..13 "two\n  lines"
    "#);
}

#[test]
fn links() {
    assert_snapshot!(show("See [the **docs**](https://example.com/a_(b)?c=d&e) or [write](mailto:ann@example.com)."), @r#"
    See the docs or write (ann@example.com).
    - text_link(https://example.com/a_(b)?c=d&e) 4..12 "the docs"
    - bold 8..12 "docs"
    "#);
    assert_snapshot!(show("[Ann](tg://user?id=42), [main.rs](src/main.rs), [here](http://localhost:3000), [src/a](src/a), [x]()"), @r#"
    Ann, main.rs (src/main.rs), here (http://localhost:3000), src/a, x
    - text_link(tg://user?id=42) 0..3 "Ann"
    "#);
    assert_snapshot!(show("<https://example.com> https://example.com <ann@example.com> [](https://example.com)"), @r#"
    https://example.com https://example.com ann@example.com https://example.com
    - text_link(https://example.com) 56..75 "https://example.com"
    "#);
    assert_snapshot!(show(r#"[`Vec`](https://doc.rust-lang.org "The Vec") and **[b](https://example.com)**"#), @r#"
    Vec (The Vec) and b
    - text_link(https://doc.rust-lang.org) 0..3 "Vec"
    - text_link(https://example.com) 18..19 "b"
    - bold 18..19 "b"
    "#);
}

#[test]
fn images_are_links() {
    assert_snapshot!(show("![A cat](https://example.com/cat.png) ![](https://example.com/dog.png)"), @r#"
    A cat https://example.com/dog.png
    - text_link(https://example.com/cat.png) 0..5 "A cat"
    - text_link(https://example.com/dog.png) 6..33 "https://example.com/dog.png"
    "#);
    assert_snapshot!(show("[![build](https://example.com/badge.svg)](https://example.com/ci)"), @r#"
    build (https://example.com/badge.svg)
    - text_link(https://example.com/ci) 0..37 "build (https://example.com/badge.svg)"
    "#);
}

#[test]
fn link_definitions_vanish_only_when_a_link_shows_them() {
    assert_snapshot!(show("See [a][1] and [2].\n\n[1]: https://example.com/a\n[3]: https://example.com/c\n[3]: https://example.com/d"), @r#"
    See a and [2].

    [3]: https://example.com/c
    [3]: https://example.com/d
    - text_link(https://example.com/a) 4..5 "a"
    "#);
    assert_snapshot!(show("> quoted\n>\n> [x]: https://example.com 'Title'\n\nend"), @r#"
    quoted

    end

    [x]: https://example.com 'Title'
    - blockquote 0..6 "quoted"
    "#);
}

#[test]
fn lists() {
    assert_snapshot!(show("Buy:\n- milk\n- bread\n  - rye\n  - wheat\n    - whole\n      - deep\n- eggs\n\nDone."), @"
    Buy:
    • milk
    • bread
      ◦ rye
      ◦ wheat
        ▪ whole
          ▪ deep
    • eggs

    Done.
    ");
    assert_snapshot!(show("1. one\n2. two\n   still two\n   - inner\n3. three\n\n7) seven\n9) nine\n1) ten"), @"
    1. one
    2. two
      still two
      ◦ inner
    3. three

    7) seven
    9) nine
    10) ten
    ");
    assert_snapshot!(show("1. a\n1. b\n1. c"), @"
    1. a
    2. b
    3. c
    ");
    assert_snapshot!(show("* loose\n\n  second paragraph\n\n* next\n\n  > quoted\n\n  ```sh\n  ls -l\n  ```\n* - x\n*\n* last"), @r#"
    • loose

      second paragraph

    • next

      quoted

    ls -l
    • 
      ◦ x
    • 
    • last
    - blockquote 37..45 "  quoted"
    - pre(sh) 47..52 "ls -l"
    "#);
}

#[test]
fn task_lists() {
    assert_snapshot!(show("- [ ] open\n- [x] **done**\n  - [X] inner\n\n1. [ ] numbered"), @r#"
    ☐ open
    ☑ done
      ☑ inner

    1. ☐ numbered
    - bold 9..13 "done"
    "#);
}

#[test]
fn quotes() {
    assert_snapshot!(show("He said:\n> one\n> **two** `three`\n>\n> four\n> > inner\n> > more\n\nafter"), @r#"
    He said:
    one
    two three

    four
    > inner
    > more

    after
    - blockquote 9..43 "one\ntwo three\n\nfour\n> inner\n> more"
    - bold 13..16 "two"
    - code 17..22 "three"
    "#);
    assert_snapshot!(show("> - a\n> - b\n>\n> ```rust\n> fn main() {}\n> ```"), @r#"
    • a
    • b

    fn main() {}
    - blockquote 0..21 "• a\n• b\n\nfn main() {}"
    - pre(rust) 9..21 "fn main() {}"
    "#);
    assert_snapshot!(show("> [!WARNING]\n> Mind the gap."), @r#"
    Warning
    Mind the gap.
    - blockquote 0..21 "Warning\nMind the gap."
    - bold 0..7 "Warning"
    "#);
}

#[test]
fn code_blocks() {
    assert_snapshot!(show("Try:\n```rust\nfn main() {\n    println!(\"**hi** ||x||\");\n}\n```\nDone."), @r#"
    Try:
    fn main() {
        println!("**hi** ||x||");
    }
    Done.
    - pre(rust) 5..48 "fn main() {\n    println!(\"**hi** ||x||\");\n}"
    "#);
    assert_snapshot!(show("~~~\nplain\n\n  more\n~~~\n\n    indented\n\n```py title=\"a.py\"\nx = 1\n```\n\n```\nnever closed"), @r#"
    plain

      more

    indented

    title="a.py"
    x = 1

    never closed
    - pre 0..13 "plain\n\n  more"
    - pre 15..23 "indented"
    - pre(py) 38..43 "x = 1"
    - pre 45..57 "never closed"
    "#);
}

#[test]
fn tables_are_drawn() {
    assert_snapshot!(show("Prices:\n\n| Item | Price | Note |\n|:---|---:|:-:|\n| Äpfel | 3 | **new** |\n| 👨‍👩‍👧 | 12.50 | `x` [y](https://example.com) |\n| a | b | c | surplus | cells |\n| short |\n\nEnd."), @r#"
    Prices:

    Item  │ Price │           Note
    ──────┼───────┼──────────────────────────
    Äpfel │     3 │            new
    👨‍👩‍👧     │ 12.50 │ x y (https://example.com)
    a     │     b │    c | surplus | cells
    short │       │

    End.
    - pre 9..216 "Item  │ Price │           Note\n──────┼───────┼──────────────────────────\nÄpfel │     3 │            new\n👨\u{200d}👩\u{200d}👧     │ 12.50 │ x y (https://example.com)\na     │     b │    c | surplus | cells\nshort │       │"
    "#);
}

#[test]
fn rules_html_and_footnotes_are_text() {
    assert_snapshot!(show("above\n\n---\n\nbelow<br>line <b>x</b>\n\n<details>\n<summary>More</summary>\n**not bold**\n</details>\n\nA[^1] and B[^2].\n\n[^1]: First *note*.\n\nend"), @r#"
    above

    ———

    below<br>line <b>x</b>

    <details>
    <summary>More</summary>
    **not bold**
    </details>

    A[^1] and B[^2].

    [^1]: First note.

    end
    - italic 125..129 "note"
    "#);
}

#[test]
fn other_scripts() {
    assert_snapshot!(show("**Grüße** aus *Köln*: „Schöne Straße“, `größer`"), @r#"
    Grüße aus Köln: „Schöne Straße“, größer
    - bold 0..5 "Grüße"
    - italic 10..14 "Köln"
    - code 33..39 "größer"
    "#);
    assert_snapshot!(show("**مرحبا** بالعالم، هذا *نص* عربي"), @r#"
    مرحبا بالعالم، هذا نص عربي
    - bold 0..5 "مرحبا"
    - italic 19..21 "نص"
    "#);
    assert_snapshot!(show("**你好**，*世界*。~~再见~~ `コード` ||秘密||"), @r#"
    你好，世界。再见 コード 秘密
    - bold 0..2 "你好"
    - italic 3..5 "世界"
    - strikethrough 6..8 "再见"
    - code 9..12 "コード"
    - spoiler 13..15 "秘密"
    "#);
}

#[test]
fn offsets_count_utf16_units() {
    assert_snapshot!(show("👍 **bold** 👨‍👩‍👧‍👦 *family* 🇩🇪 `𝒙` **🎉**"), @r#"
    👍 bold 👨‍👩‍👧‍👦 family 🇩🇪 𝒙 🎉
    - bold 3..7 "bold"
    - italic 20..26 "family"
    - code 32..34 "𝒙"
    - bold 35..37 "🎉"
    "#);
}

#[test]
fn entities_have_the_bot_api_form() {
    let parts = render("**b** [l](https://example.com)\n```rust\nx\n```\n```\ny\n```");
    let json = serde_json::to_string(&parts).expect("parts serialize");
    assert_snapshot!(json, @r#"[{"text":"b l\nx\ny","entities":[{"type":"bold","offset":0,"length":1},{"type":"text_link","url":"https://example.com","offset":2,"length":1},{"type":"pre","language":"rust","offset":4,"length":1},{"type":"pre","offset":6,"length":1}]}]"#);
    assert_eq!(
        serde_json::from_str::<Vec<Rendered>>(&json).expect("parts deserialize"),
        parts
    );
}
