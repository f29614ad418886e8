use std::io::Write;

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use tempfile::TempDir;

use super::*;

/// A tar of files, with names as they are.
fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // The builder refuses names that lead out.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap().to_le_bytes()
}

fn long(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_le_bytes()
}

/// A zip of deflated files with the modes of a Unix system.
fn zip_of(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let (mut zip, mut list) = (Vec::new(), Vec::new());
    for (name, content, mode) in files {
        let mut crc = Crc::new();
        crc.update(content);
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        let offset = long(zip.len());
        let mut middle = Vec::new();
        middle.extend(20_u16.to_le_bytes());
        middle.extend(0_u16.to_le_bytes());
        middle.extend(8_u16.to_le_bytes());
        middle.extend([0; 4]);
        middle.extend(crc.sum().to_le_bytes());
        middle.extend(long(packed.len()));
        middle.extend(long(content.len()));
        middle.extend(short(name.len()));
        middle.extend([0; 2]);
        zip.extend(b"PK\x03\x04");
        zip.extend(&middle);
        zip.extend(name.as_bytes());
        zip.extend(&packed);
        list.extend(b"PK\x01\x02");
        list.extend([20, 3]);
        list.extend(&middle);
        list.extend([0; 6]);
        list.extend((mode << 16).to_le_bytes());
        list.extend(offset);
        list.extend(name.as_bytes());
    }
    let offset = long(zip.len());
    zip.extend(&list);
    zip.extend(b"PK\x05\x06\0\0\0\0");
    zip.extend(short(files.len()));
    zip.extend(short(files.len()));
    zip.extend(long(list.len()));
    zip.extend(offset);
    zip.extend([0; 2]);
    zip
}

/// Unpacks, and tells the files with their texts, or the problem.
fn unpacked(bytes: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    let (file, into) = (folder.path().join("archive"), folder.path().join("into"));
    fs::write(&file, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let left_out = match unpack(&file, &into) {
        Ok(left_out) => left_out,
        Err(problem) => return problem,
    };
    let (mut told, mut open) = (Vec::new(), vec![into.clone()]);
    while let Some(next) = open.pop() {
        for path in fs::read_dir(&next)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            let name = path.strip_prefix(&into).unwrap().display().to_string();
            match path.is_dir() {
                true => open.push(path),
                false => told.push(format!("{name}: {}", fs::read_to_string(&path).unwrap())),
            }
        }
    }
    told.sort();
    told.extend(left_out.iter().map(|name| format!("left out: {name}")));
    told.join("\n")
}

const PLAIN: u32 = 0o100_644;
const LINK: u32 = 0o120_777;

#[test]
fn plain_files_of_each_form_come_out() {
    let tar = tar_of(&[("a/b.txt", b"one"), ("c.txt", b"two")]);
    let expected = "a/b.txt: one\nc.txt: two";
    assert_eq!(unpacked(&tar), expected);
    assert_eq!(unpacked(&gz(&tar)), expected);
    let zip = zip_of(&[("a/b.txt", b"one", PLAIN), ("c.txt", b"two", PLAIN)]);
    assert_eq!(unpacked(&zip), expected);
    let with_comment = [&zip[..zip.len() - 2], &[3, 0], b"hi!"].concat();
    assert_eq!(unpacked(&with_comment), expected);
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../evil", "a/../../evil", "/evil"] {
        let expected = format!("`{name}` in it leads out of it");
        assert_eq!(unpacked(&tar_of(&[(name, b"x")])), expected);
        assert_eq!(unpacked(&zip_of(&[(name, b"x", PLAIN)])), expected);
    }
}

#[test]
fn links_and_second_files_of_a_name_are_left_out() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    builder
        .append_link(&mut header, "link", "/etc/passwd")
        .unwrap();
    let tar = builder.into_inner().unwrap();
    assert_eq!(unpacked(&tar), "left out: link");
    let zip = zip_of(&[("link", b"/etc/passwd", LINK), ("a", b"x", PLAIN)]);
    assert_eq!(unpacked(&zip), "a: x\nleft out: link");
    let twice = tar_of(&[("a", b"first"), ("a", b"second"), ("a/b", b"third")]);
    assert_eq!(unpacked(&twice), "a: first\nleft out: a\nleft out: a/b");
}

#[test]
fn bombs_and_damage_are_refused() {
    let zeros = vec![0; 80 * 1024 * 1024];
    let huge =
        "it is small and would become huge: more than 64 MiB, and more than 100 times its size";
    assert_eq!(unpacked(&gz(&tar_of(&[("a", &zeros)]))), huge);
    assert_eq!(unpacked(&zip_of(&[("a", &zeros, PLAIN)])), huge);
    let zip = zip_of(&[("a", b"some text", PLAIN)]);
    // The list says that the file is shorter than it is.
    let mut lying = zip.clone();
    let list = zip
        .windows(4)
        .position(|part| part == b"PK\x01\x02")
        .unwrap();
    lying[list + 24] = 3;
    assert_eq!(unpacked(&lying), "it is damaged");
    let mut changed = zip.clone();
    changed[14] ^= 1;
    changed[list + 16] ^= 1;
    assert_eq!(unpacked(&changed), "it is damaged", "another checksum");
    assert_eq!(unpacked(&zip[..zip.len() - 8]), "it is damaged");
    for at in 0..zip.len() {
        let mut odd = zip.clone();
        odd[at] = 0xff;
        unpacked(&odd);
    }
    assert_eq!(
        unpacked(b"hello"),
        "it is neither a folder nor an archive (.tar, .tar.gz, .zip)"
    );
}

#[test]
fn a_home_is_found_below_other_folders() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("payload/home/ann/.openclaw");
    fs::create_dir_all(home.join("agents")).unwrap();
    fs::write(home.join("openclaw.json"), "{}").unwrap();
    assert_eq!(home_in(folder.path(), System::OpenClaw), home);
    assert_eq!(home_in(folder.path(), System::Moltis), folder.path());
}
