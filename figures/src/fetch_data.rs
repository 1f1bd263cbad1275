//! `fetch-data`: the public data sets that the figures use, from public copies at fixed commits, verified.
//!
//! What is there and right is left alone. A download that breaks off is gone on with the next time; its part has another name, and a file is
//! in its place whole or not at all.

mod derive;
mod newsgroups;
mod sets;

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::sets::{OWN, SETS, Set};
use crate::{Result, files, root};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the data sets, one folder each.
    #[arg(value_name = "DIR", required_unless_present = "table")]
    dir: Option<PathBuf>,
    /// Only these data sets: several names, or the option several times.
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    only: Vec<String>,
    /// Take `URL/SET/FILE` instead of the addresses of the copies.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Write docs/DATA.md, the table of DIR, and fetch nothing.
    #[arg(long)]
    table: bool,
}

const TABLE: &str = "docs/DATA.md";

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("no data set `{0}`; there are: {1}")]
    Unknown(String, String),
    #[error("cannot download {url}: {reason}; {have} of {of} bytes are kept for the next time")]
    Download {
        url: String,
        reason: String,
        have: u64,
        of: u64,
    },
    #[error("{url}: sha256 is {got}, expected {expected}; nothing was written")]
    Checksum {
        url: String,
        expected: String,
        got: String,
    },
}

/// What a file holds, packed or not; `None` if it cannot be read.
fn content(path: &Path) -> Option<Vec<u8>> {
    if let Ok(bytes) = std::fs::read(path) {
        return Some(bytes);
    }
    let packed = std::fs::read(beside(path, ".gz")).ok()?;
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// The path with something behind its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether a path that figures read is for the user to fill.
pub(crate) fn is_own(path: &str) -> bool {
    OWN.iter().any(|own| own.path == path)
}

/// Downloads the missing rest of a file with this number of bytes.
fn go_on(url: &str, part: &Path, bytes: u64) -> std::result::Result<(), String> {
    let text = |e: ureq::Error| e.to_string();
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_global(Some(Duration::from_secs(3600)))
        .build();
    let mut have = part.metadata().map_or(0, |m| m.len());
    if have > bytes {
        have = 0;
    } else if have == bytes {
        return Ok(());
    }
    let mut request = ureq::Agent::from(config).get(url);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(text)?;
    let range = response.headers().get("Content-Range");
    let range = range.and_then(|range| range.to_str().ok()).unwrap_or("");
    // A server need not know of parts: then it sends the whole.
    let goes_on = response.status() == 206 && range.starts_with(&format!("bytes {have}-"));
    let failed = |e: std::io::Error| e.to_string();
    let mut file = match goes_on {
        true => OpenOptions::new().append(true).open(part),
        false => {
            have = 0;
            File::create(part)
        }
    }
    .map_err(failed)?;
    // A server that sends without end is cut off.
    let body = response.body_mut().with_config().limit(bytes - have + 1);
    std::io::copy(&mut body.reader(), &mut file).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    match part.metadata().map_or(0, |m| m.len()) {
        got if got < bytes => Err("the connection ended early".into()),
        _ => Ok(()),
    }
}

/// Downloads `url` to `path` if its bytes are those expected.
fn fetch(url: &str, path: &Path, bytes: u64, expected: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    }
    let part = beside(path, ".part");
    let length = || part.metadata().map_or(0, |m| m.len());
    let ended = go_on(url, &part, bytes);
    if let Err(reason) = ended.or_else(|reason| match length() {
        // What came beyond the end is not right either; the checksum says so.
        have if have >= bytes => Ok(()),
        _ => Err(reason),
    }) {
        return Err(Box::new(FetchError::Download {
            url: url.into(),
            reason,
            have: length(),
            of: bytes,
        }));
    }
    let got = files::sha256(&std::fs::read(&part)?);
    if got != expected {
        std::fs::remove_file(&part)?;
        return Err(Box::new(FetchError::Checksum {
            url: url.into(),
            expected: expected.into(),
            got,
        }));
    }
    Ok(std::fs::rename(&part, path)?)
}

fn chosen(only: &[String]) -> std::result::Result<Vec<&'static Set>, FetchError> {
    if let Some(name) = only.iter().find(|n| SETS.iter().all(|s| s.folder != **n)) {
        let names: Vec<_> = SETS.iter().map(|s| s.folder).collect();
        return Err(FetchError::Unknown(name.clone(), names.join(", ")));
    }
    let chosen = |set: &&Set| only.is_empty() || only.iter().any(|n| n == set.folder);
    Ok(SETS.iter().filter(chosen).collect())
}

/// Fetches what is missing of a set and makes what figures read of it; `false` if something failed.
fn bring(set: &Set, dir: &Path, base_url: Option<&str>) -> bool {
    let folder = dir.join(set.folder);
    let mut complete = true;
    for file in set.files {
        let path = folder.join(file.name);
        let there = content(&path).is_some_and(|bytes| files::sha256(&bytes) == file.sha256);
        let url = match base_url {
            Some(base) => format!(
                "{}/{}/{}",
                base.trim_end_matches('/'),
                set.folder,
                file.name
            ),
            None => file.address(),
        };
        let made = || -> Result<()> {
            if there {
                println!("present  {}", path.display());
            } else {
                fetch(&url, &path, file.bytes, file.sha256)?;
                println!("fetched  {}", path.display());
            }
            if let Some(makes) = file.makes.as_ref().filter(|m| !(m.right)(&folder)) {
                (makes.how)(&folder)?;
                let names = makes.names.join(", ");
                println!("made     {names} of {}", path.display());
            }
            Ok(())
        };
        if let Err(error) = made() {
            eprintln!("error: {error}");
            complete = false;
        }
    }
    complete
}

/// The table of the folder of data.
fn table() -> String {
    let mut out = String::from(
        "# Data of the figures\n\nWritten by `cargo xtask fetch-data --table`; do not edit.\n\n\
         `cargo xtask fetch-data DIR` fills DIR from public copies at fixed commits, whose bytes it verifies; what is there is left alone, and a download that broke \
         off is gone on with. `cargo xtask reproduce-figures --data DIR` reads it. Texts and tables may also stand there packed, with `.gz` behind their names; archives, sounds and pictures may not. \
         Terms are as their publishers give them, as far as known; look again before you pass a file on.\n\n\
         | below DIR | what | licence | copy, commit, sha256 |\n|---|---|---|---|\n",
    );
    for set in SETS {
        for file in set.files {
            let read = file.read();
            let names: Vec<_> = (read.iter())
                .map(|name| format!("`{}/{name}`", set.folder))
                .collect();
            let made = match &file.makes {
                Some(_) => format!(", made of `{}`", file.name),
                None => String::new(),
            };
            let [repository, commit, path] = file.copy;
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "| {}{made} | {} | {} | github.com/{repository} `{path}`, {}, `{}` |",
                names.join(", "),
                set.what,
                set.licence,
                &commit[..12],
                file.sha256
            );
        }
    }
    out += "\nWhat may not be passed on. Whoever has a copy puts it there, and the figures take it in place of the free data:\n\n\
            | below DIR | what |\n|---|---|\n";
    for own in OWN {
        let _ = writeln!(out, "| `{}` | {} |", own.path, own.what);
    }
    out
}

/// Runs the command: every file is tried; `false` if one failed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.table {
        files::write_atomic(&root().join(TABLE), table().as_bytes())?;
        return Ok(true);
    }
    let dir = args.dir.as_deref().ok_or("which folder?")?;
    let mut complete = true;
    for set in chosen(&args.only)? {
        println!("{}: {}", set.folder, set.what);
        let use_of = if set.noncommercial {
            "NO COMMERCIAL USE. "
        } else {
            ""
        };
        println!("         {use_of}Licence: {}", set.licence);
        complete &= bring(set, dir, args.base_url.as_deref());
    }
    for own in OWN {
        let path = dir.join(own.path);
        let there = if path.exists() { "present" } else { "yours  " };
        println!("{there}  {}: {}", path.display(), own.what);
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::figures::FIGURES;

    /// What a server on a loopback port is asked for: the path and the first byte wanted.
    type Asked = Arc<Mutex<Vec<(String, usize)>>>;

    /// Answers every request by the function; returns the address.
    fn serve(answer: impl Fn(&str, usize) -> Vec<u8> + Send + 'static) -> (String, Asked) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Asked::default();
        let log = asked.clone();
        // It ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut path, mut from, mut line) = (String::new(), 0, String::new());
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(rest) = line.strip_prefix("GET ") {
                        path = rest.split(' ').next().unwrap().to_owned();
                    }
                    let lower = line.to_lowercase();
                    if let Some(range) = lower.strip_prefix("range: bytes=") {
                        from = range.trim().trim_end_matches('-').parse().unwrap();
                    }
                    line.clear();
                }
                log.lock().unwrap().push((path.clone(), from));
                let reply = answer(&path, from);
                // Who has enough may hang up.
                let _ = reader.into_inner().write_all(&reply);
            }
        });
        (url, asked)
    }

    fn reply(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    /// A server of these bytes that knows of parts.
    fn parts(all: &'static [u8]) -> impl Fn(&str, usize) -> Vec<u8> + Send + 'static {
        move |_, from| match from {
            0 => reply("200 OK", all.len(), all),
            _ => {
                let length = all.len();
                let range = format!("bytes {from}-{}/{length}", length - 1);
                let status = format!("206 Partial Content\r\nContent-Range: {range}");
                reply(&status, length - from, &all[from..])
            }
        }
    }

    /// Names and contents of a folder.
    fn left(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap());
        let file = |f: std::fs::DirEntry| {
            let name = f.file_name().into_string().unwrap();
            (name, std::fs::read(f.path()).unwrap())
        };
        files.map(file).collect()
    }

    /// What `fetch` says of such a reply, the address, and the folder afterwards.
    fn attempt(reply: Vec<u8>) -> (Option<String>, String, BTreeMap<String, Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let (url, _) = serve(move |_, _| reply.clone());
        let path = folder.path().join("file");
        let done = fetch(&url, &path, 6, &files::sha256(b"counts"));
        let message = done.err().map(|e| e.to_string());
        (message, url, left(folder.path()))
    }

    fn folder_of(name: &str, bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        BTreeMap::from([(name.to_owned(), bytes.to_vec())])
    }

    #[test]
    fn a_good_file_is_written() {
        let (message, _, left) = attempt(reply("200 OK", 6, b"counts"));
        assert_eq!(message, None);
        assert_eq!(left, folder_of("file", b"counts"));
    }

    #[test]
    fn a_wrong_checksum_names_all_three_and_writes_nothing() {
        for wrong in [&b"Counts"[..], b"counts and more"] {
            let (message, url, left) = attempt(reply("200 OK", wrong.len(), wrong));
            let message = message.unwrap();
            for part in [url, files::sha256(b"counts"), "nothing was written".into()] {
                assert!(message.contains(&part), "{message}");
            }
            assert!(left.is_empty());
        }
    }

    #[test]
    fn a_truncated_body_is_a_failed_download_that_is_gone_on_with() {
        let (message, url, left) = attempt(reply("200 OK", 6, b"cou"));
        let message = message.unwrap();
        assert!(message.starts_with(&format!("cannot download {url}")));
        assert!(message.contains("3 of 6 bytes"), "{message}");
        assert_eq!(left, folder_of("file.part", b"cou"));
    }

    #[test]
    fn a_part_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(folder.path().join("file.part"), b"cou").unwrap();
        let (url, asked) = serve(parts(b"counts"));
        fetch(&url, &path, 6, &files::sha256(b"counts")).unwrap();
        assert_eq!(left(folder.path()), folder_of("file", b"counts"));
        assert_eq!(asked.lock().unwrap()[..], [("/".to_owned(), 3)]);
    }

    #[test]
    fn a_server_that_knows_no_parts_sends_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file.part"), b"cou").unwrap();
        let (url, _) = serve(|_, _| reply("200 OK", 6, b"counts"));
        let path = folder.path().join("file");
        fetch(&url, &path, 6, &files::sha256(b"counts")).unwrap();
        assert_eq!(left(folder.path()), folder_of("file", b"counts"));
    }

    #[test]
    fn a_wrong_part_is_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(folder.path().join("file.part"), b"xxx").unwrap();
        let (url, _) = serve(parts(b"counts"));
        assert!(fetch(&url, &path, 6, &files::sha256(b"counts")).is_err());
        assert!(left(folder.path()).is_empty());
        fetch(&url, &path, 6, &files::sha256(b"counts")).unwrap();
    }

    #[test]
    fn a_missing_file_is_a_failed_download() {
        let (message, url, left) = attempt(reply("404 Not Found", 6, b"counts"));
        let message = message.unwrap();
        assert!(
            message.contains(&url) && message.contains("404"),
            "{message}"
        );
        assert!(left.is_empty());
    }

    #[test]
    fn a_bad_file_does_not_replace_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"before").unwrap();
        let (url, _) = serve(|_, _| reply("200 OK", 1, b"x"));
        assert!(fetch(&url, &path, 6, &files::sha256(b"counts")).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
    }

    #[test]
    fn a_set_is_fetched_once_and_a_packed_one_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (url, asked) = serve(parts(b"counts"));
        let sha256: &'static str = files::sha256(b"counts").leak();
        let file = |name| sets::File {
            name,
            copy: [""; 3],
            bytes: 6,
            sha256,
            makes: None,
        };
        let set = Set {
            folder: "set",
            what: "",
            licence: "",
            noncommercial: false,
            files: Vec::leak(vec![file("a"), file("b")]),
        };
        std::fs::create_dir(dir.path().join("set")).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"counts").unwrap();
        std::fs::write(dir.path().join("set/b.gz"), packed.finish().unwrap()).unwrap();
        for _ in 0..2 {
            assert!(bring(&set, dir.path(), Some(&url)));
        }
        assert_eq!(asked.lock().unwrap()[..], [("/set/a".to_owned(), 0)]);
        std::fs::write(dir.path().join("set/a"), b"spoilt").unwrap();
        assert!(bring(&set, dir.path(), Some(&url)));
        assert_eq!(std::fs::read(dir.path().join("set/a")).unwrap(), b"counts");
    }

    /// Bytes of such a number that are unlike those of another file.
    fn filling(salt: u64, bytes: u64) -> Vec<u8> {
        let mut x = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let byte = |_| {
            // A step of xorshift64.
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 56) as u8
        };
        (0..bytes).map(byte).collect()
    }

    /// Every file of every set in its place and of its size, from a server that breaks off in the middle of each; its content is another, and so is
    /// the checksum.
    #[test]
    fn every_set_comes_in_its_size_after_a_broken_connection() {
        let dir = tempfile::tempdir().unwrap();
        let mut all = BTreeMap::new();
        for (salt, (set, file)) in SETS
            .iter()
            .flat_map(|set| set.files.iter().map(move |file| (set, file)))
            .enumerate()
        {
            let path = format!("/{}/{}", set.folder, file.name);
            assert!(all.insert(path, filling(salt as u64, file.bytes)).is_none());
        }
        let contents = all.clone();
        let (url, asked) = serve(move |path, from| {
            let all = &contents[path];
            let length = all.len();
            match from {
                // Half of what was announced.
                0 => reply("200 OK", length, &all[..length / 2]),
                _ => {
                    let range = format!("bytes {from}-{}/{length}", length - 1);
                    let status = format!("206 Partial Content\r\nContent-Range: {range}");
                    reply(&status, length - from, &all[from..])
                }
            }
        });
        let sets: Vec<Set> = SETS
            .iter()
            .map(|set| {
                let file = |file: &sets::File| sets::File {
                    name: file.name,
                    copy: file.copy,
                    bytes: file.bytes,
                    sha256: files::sha256(&all[&format!("/{}/{}", set.folder, file.name)]).leak(),
                    makes: None,
                };
                Set {
                    files: Vec::leak(set.files.iter().map(file).collect()),
                    ..*set
                }
            })
            .collect();
        for complete in [false, true] {
            for set in &sets {
                assert_eq!(
                    bring(set, dir.path(), Some(&url)),
                    complete,
                    "{}",
                    set.folder
                );
            }
        }
        for (path, content) in &all {
            let written = dir.path().join(&path[1..]);
            assert_eq!(std::fs::read(&written).unwrap(), *content, "{path}");
            assert!(!beside(&written, ".part").exists(), "{path}");
        }
        // Nothing was fetched twice.
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2 * all.len());
        for (path, content) in &all {
            let mut starts = asked
                .iter()
                .filter(|(of, _)| of == path)
                .map(|(_, from)| *from);
            let starts = (starts.next(), starts.next());
            assert_eq!(starts, (Some(0), Some(content.len() / 2)), "{path}");
        }
    }

    #[test]
    fn an_unknown_set_lists_the_known_ones() {
        let message = chosen(&["nothing".into()]).err().unwrap().to_string();
        assert!(SETS.iter().all(|s| message.contains(s.folder)));
        assert_eq!(chosen(&["segmentation".into()]).unwrap().len(), 1);
    }

    #[test]
    fn what_figures_read_is_fetched_made_or_the_users_and_all_of_it_is_read() {
        let read: BTreeSet<String> = (FIGURES.iter())
            .flat_map(|f| f.data.iter().map(|&path| path.to_owned()))
            .collect();
        let fetched = SETS.iter().flat_map(|set| {
            let names = set.files.iter().flat_map(sets::File::read);
            names.map(|name| format!("{}/{name}", set.folder))
        });
        let own = OWN.iter().map(|own| own.path.to_owned());
        assert_eq!(read, fetched.chain(own).collect());
    }

    #[test]
    fn addresses_are_of_one_commit() {
        for file in SETS.iter().flat_map(|set| set.files) {
            let [_, commit, path] = file.copy;
            assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()));
            assert!(file.sha256.len() == 64 && file.bytes > 0 && !path.starts_with('/'));
            assert!(file.address().ends_with(path));
        }
    }

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let written = std::fs::read_to_string(root().join(TABLE)).unwrap();
        assert_eq!(written, table(), "run `cargo xtask fetch-data --table`");
    }
}
