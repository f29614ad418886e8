//! `scripts/release`: the tarball, the Debian package and their checksums; the package installed,
//! upgraded and purged in a root of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

fn done(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A release of a program that only leads to the one under test, because that one is huge.
fn released() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("parlor");
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_parlor"));
    fs::write(&program, script).expect("writes");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("sets");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    done(
        Command::new(root.join("scripts/release"))
            .arg(folder.path().join("dist"))
            .env("PARLOR_PROGRAM", &program),
    );
    folder
}

fn ending(folder: &Path, end: &str) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut paths = entries.map(|entry| entry.path());
    let found = paths.find(|path| path.display().to_string().ends_with(end));
    found.unwrap_or_else(|| panic!("nothing ends with {end}"))
}

#[test]
fn a_tarball_has_the_program_its_pages_and_its_completions() {
    let folder = released();
    let dist = folder.path().join("dist");
    let tarball = ending(&dist, ".tar.gz");
    let listed = done(Command::new("tar").arg("tzf").arg(&tarball));
    for part in [
        "/parlor\n",
        "/parlor.service\n",
        "/environment\n",
        "/man/parlor.1\n",
        "/man/parlor-backup.1\n",
        "/completions/parlor.bash\n",
        "/completions/parlor.zsh\n",
        "/completions/parlor.fish\n",
        "/LICENSE-MIT\n",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    done(
        Command::new("sha256sum")
            .args(["-c", "SHA256SUMS"])
            .current_dir(&dist),
    );
    let before = fs::read(&tarball).expect("reads");
    let again = released();
    let tarball = ending(&again.path().join("dist"), ".tar.gz");
    assert!(
        before == fs::read(tarball).expect("reads"),
        "the same source gives the same bytes"
    );
}

/// A plain dpkg root: scripts run outside of it and are told where it is.
struct Root {
    folder: TempDir,
}

impl Root {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for name in [
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/dpkg/triggers",
            "etc",
            "var/log",
        ] {
            fs::create_dir_all(path.join(name)).expect("makes");
        }
        fs::write(path.join("var/lib/dpkg/status"), "").expect("writes");
        for (name, text) in [
            ("passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            ("group", "root:x:0:\n"),
            ("shadow", "root:*:19000:0:99999:7:::\n"),
            ("gshadow", "root:*::\n"),
        ] {
            fs::write(path.join("etc").join(name), text).expect("writes");
        }
        Root { folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn dpkg(&self, arguments: &[&str]) -> String {
        let mut root = std::ffi::OsString::from("--root=");
        root.push(self.folder.path());
        done(
            Command::new("dpkg")
                .arg(root)
                .args([
                    "--force-script-chrootless",
                    "--force-depends",
                    "--force-not-root",
                ])
                .args(arguments),
        )
    }

    fn has_user(&self) -> bool {
        fs::read_to_string(self.at("etc/passwd"))
            .expect("reads")
            .contains("\nparlor:")
    }
}

/// The package as an earlier version would be: with a file that is gone since, and without one that is
/// new.
fn earlier(package: &str, folder: &Path) -> String {
    let unpacked = folder.join("earlier");
    done(
        Command::new("dpkg-deb")
            .arg("-R")
            .arg(package)
            .arg(&unpacked),
    );
    let control = unpacked.join("DEBIAN/control");
    let text = fs::read_to_string(&control).expect("reads");
    let lines = text
        .lines()
        .map(|line| match line.starts_with("Version: ") {
            true => "Version: 0.0.1~rc1",
            false => line,
        });
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(&control, text).expect("writes");
    let doc = unpacked.join("usr/share/doc/parlor");
    fs::write(doc.join("gone-since"), "x").expect("writes");
    fs::remove_file(doc.join("config.example.toml")).expect("is there");
    let built = folder.join("earlier.deb").display().to_string();
    done(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(&unpacked)
            .arg(&built),
    );
    built
}

/// An upgrade keeps user, home and settings, and takes files away that the new version has not.
#[test]
fn a_package_is_upgraded_from_an_earlier_version() {
    if !is_there("dpkg-deb") || !nix_is_root() {
        return;
    }
    let folder = released();
    let package = ending(&folder.path().join("dist"), ".deb")
        .display()
        .to_string();
    let earlier = earlier(&package, folder.path());
    let root = Root::new();
    let told = root.dpkg(&["--install", &earlier]);
    assert!(told.contains("init writes a config"), "{told}");
    let version = |root: &Root| {
        let status = fs::read_to_string(root.at("var/lib/dpkg/status")).expect("reads");
        let line = status.lines().find(|line| line.starts_with("Version: "));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(version(&root), "Version: 0.0.1~rc1");
    let old = root.at("usr/share/doc/parlor/gone-since");
    let new = root.at("usr/share/doc/parlor/config.example.toml");
    assert!(old.exists() && !new.exists());
    let users = fs::read_to_string(root.at("etc/passwd")).expect("reads");
    let owner = fs::metadata(root.at("var/lib/parlor"))
        .expect("is there")
        .uid();
    fs::write(root.at("etc/parlor/environment"), "KEY=1\n").expect("writes");
    fs::write(root.at("var/lib/parlor/config.toml"), "mine").expect("writes");

    let told = root.dpkg(&["--install", &package]);
    assert!(!told.contains("init writes a config"), "{told}");
    assert_eq!(
        version(&root),
        format!("Version: {}", env!("CARGO_PKG_VERSION"))
    );
    assert!(!old.exists() && new.exists());
    let kept = |path: &str| fs::read_to_string(root.at(path)).expect("reads");
    assert_eq!(kept("etc/passwd"), users, "the same user");
    assert_eq!(kept("etc/parlor/environment"), "KEY=1\n");
    assert_eq!(kept("var/lib/parlor/config.toml"), "mine");
    let home = fs::metadata(root.at("var/lib/parlor")).expect("is there");
    assert_eq!(
        (home.uid(), home.permissions().mode() & 0o777),
        (owner, 0o700)
    );

    root.dpkg(&["--purge", "parlor"]);
    for path in [
        "var/lib/parlor",
        "etc/parlor",
        "usr/bin/parlor",
        "usr/share/doc/parlor",
    ] {
        assert!(!root.at(path).exists(), "{path}");
    }
    assert!(!root.has_user());
}

/// Installing a package makes a user, which only root can do.
#[test]
fn a_package_is_installed_upgraded_removed_and_purged() {
    if !is_there("dpkg-deb") || !nix_is_root() {
        return;
    }
    let folder = released();
    let package = ending(&folder.path().join("dist"), ".deb")
        .display()
        .to_string();
    let content = done(Command::new("dpkg-deb").args(["--contents", &package]));
    for part in [
        "./usr/share/man/man1/parlor.1.gz",
        "./usr/share/bash-completion/completions/parlor",
        "./usr/share/zsh/vendor-completions/_parlor",
        "./usr/share/doc/parlor/copyright",
    ] {
        assert!(content.contains(part), "{part} in {content}");
    }
    let root = Root::new();
    root.dpkg(&["--install", &package]);
    assert!(root.has_user());
    let home = fs::metadata(root.at("var/lib/parlor")).expect("is there");
    assert_eq!(home.permissions().mode() & 0o777, 0o700);
    assert_ne!(home.uid(), 0, "the home is the user's");
    let environment = root.at("etc/parlor/environment");
    assert_eq!(
        fs::metadata(&environment)
            .expect("is there")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );

    fs::write(&environment, "TELEGRAM_BOT_TOKEN=1\n").expect("writes");
    fs::write(root.at("var/lib/parlor/config.toml"), "mine").expect("writes");
    root.dpkg(&["--install", &package]);
    let kept = |path: PathBuf| fs::read_to_string(path).expect("reads");
    assert_eq!(kept(environment.clone()), "TELEGRAM_BOT_TOKEN=1\n");
    assert_eq!(kept(root.at("var/lib/parlor/config.toml")), "mine");

    root.dpkg(&["--remove", "parlor"]);
    assert!(!root.at("usr/bin/parlor").exists() && root.has_user());
    assert_eq!(kept(root.at("var/lib/parlor/config.toml")), "mine");

    root.dpkg(&["--purge", "parlor"]);
    assert!(!root.at("var/lib/parlor").exists() && !environment.exists() && !root.has_user());
}

fn nix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// S4.40: one service unit. `systemd-analyze verify` ends well also where it does not know a key, so its words count.
#[test]
fn the_service_is_understood_and_has_few_rights() {
    if !is_there("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let unit = include_str!("../../packaging/parlor.service");
    let program = env!("CARGO_BIN_EXE_parlor");
    let path = folder.path().join("parlor.service");
    let unit = unit
        .replace("/usr/bin/parlor", program)
        .replace("Documentation=man:parlor(1)\n", "");
    fs::write(&path, unit).expect("writes");
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&path)
        .output()
        .expect("it starts");
    assert_eq!(text(&verified), "");
    let rated = done(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true"])
            .arg(&path),
    );
    let rating = rated.lines().last().unwrap_or_default();
    let number = rating
        .split_whitespace()
        .find_map(|word| word.parse::<f64>().ok());
    assert!(number.is_some_and(|number| number < 2.0), "{rating}");
}
