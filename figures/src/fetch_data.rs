//! `fetch-data`: public data sets from their publishers, verified and written whole or not at all.

mod newsgroups;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Result, files};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the data sets, one folder each.
    #[arg(long, default_value = "data")]
    out: PathBuf,
    /// Only this data set.
    #[arg(long)]
    only: Option<String>,
    /// Take `URL/SET/FILE` instead of the publishers' addresses.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

/// One file of a data set. Only files whose published bytes are known are listed; of data published as archives or
/// sound that is converted before use there is no checksum to compare with.
struct Source {
    set: &'static str,
    file: &'static str,
    url: &'static str,
    sha256: &'static str,
}

const SOURCES: &[Source] = &[
    Source {
        set: "20news_w100",
        file: "20news_w100.mat",
        url: "https://www.cs.toronto.edu/~roweis/data/20news_w100.mat",
        sha256: "6667c5459e22eb544a854bff1443edaaea71735cf1af7b12cc5d986e74af7064",
    },
    Source {
        set: "segmentation",
        file: "segmentation.data",
        url: "https://archive.ics.uci.edu/ml/machine-learning-databases/image/segmentation.data",
        sha256: "b4226a708f25d44fbbe4eae36f0d66326bc46393534c2a0d2b9267ae1302002f",
    },
    Source {
        set: "segmentation",
        file: "segmentation.test",
        url: "https://archive.ics.uci.edu/ml/machine-learning-databases/image/segmentation.test",
        sha256: "3b5aa7c3559fdc3a165e97d321809b81292084adfc112645e250d90321203685",
    },
    Source {
        set: "lfw_subset",
        file: "lfw_subset.npy",
        url: "https://gitlab.com/scikit-image/data/-/raw/master/lfw_subset.npy",
        sha256: "9560ec2f5edfac01973f63a8a99d00053fecd11e21877e18038fbe500f8e872c",
    },
    Source {
        set: "omniglot_small1",
        file: "images_background_small1.zip",
        url: "https://github.com/brendenlake/omniglot/raw/master/python/images_background_small1.zip",
        sha256: "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4",
    },
    Source {
        set: "tensors_tensorly",
        file: "COVID19_data.npy",
        url: "https://github.com/tensorly/tensorly/raw/main/tensorly/datasets/data/COVID19_data.npy",
        sha256: "b1e2f72e0211f556c6c32cd66368a9a3c4ee521aed116d195fdadb07bf498aad",
    },
    Source {
        set: "tensors_tensorly",
        file: "IL2_Response_Tensor.npy",
        url: "https://github.com/tensorly/tensorly/raw/main/tensorly/datasets/data/IL2_Response_Tensor.npy",
        sha256: "c8a8df301c943683104345fc4155061c7fc303d6ccdbad18ca1ce472ee82d7d1",
    },
];

/// More than any listed file; a server that sends without end is cut off here.
const LARGEST: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("no data set `{0}`; there are: {1}")]
    Unknown(String, String),
    #[error("cannot download {url}: {reason}")]
    Download { url: String, reason: String },
    #[error("{url}: sha256 is {got}, expected {expected}; nothing was written")]
    Checksum {
        url: String,
        expected: String,
        got: String,
    },
}

fn download(url: &str) -> std::result::Result<Vec<u8>, FetchError> {
    let failed = |e: ureq::Error| FetchError::Download {
        url: url.into(),
        reason: e.to_string(),
    };
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_global(Some(Duration::from_secs(600)))
        .build();
    let mut response = ureq::Agent::from(config).get(url).call().map_err(failed)?;
    response
        .body_mut()
        .with_config()
        .limit(LARGEST)
        .read_to_vec()
        .map_err(failed)
}

/// Downloads `url` to `path` if the checksum is right.
fn fetch(url: &str, expected: &str, path: &Path) -> Result<()> {
    let bytes = download(url)?;
    let got = files::sha256(&bytes);
    if got != expected {
        return Err(Box::new(FetchError::Checksum {
            url: url.into(),
            expected: expected.into(),
            got,
        }));
    }
    files::write_atomic(path, &bytes)
}

fn chosen(only: Option<&str>) -> std::result::Result<Vec<&'static Source>, FetchError> {
    let found: Vec<_> = SOURCES
        .iter()
        .filter(|s| only.is_none_or(|o| o == s.set))
        .collect();
    if let (Some(name), true) = (only, found.is_empty()) {
        let mut names: Vec<_> = SOURCES.iter().map(|s| s.set).collect();
        names.dedup();
        return Err(FetchError::Unknown(name.into(), names.join(", ")));
    }
    Ok(found)
}

/// Runs the command: every file is tried; `false` if one failed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut complete = true;
    for source in chosen(args.only.as_deref())? {
        let path = args.out.join(source.set).join(source.file);
        if std::fs::read(&path).is_ok_and(|b| files::sha256(&b) == source.sha256) {
            println!("present  {}", path.display());
            complete &= derived(source, &args.out);
            continue;
        }
        let url = match &args.base_url {
            Some(base) => format!(
                "{}/{}/{}",
                base.trim_end_matches('/'),
                source.set,
                source.file
            ),
            None => source.url.to_owned(),
        };
        match fetch(&url, source.sha256, &path) {
            Ok(()) => {
                println!("fetched  {}", path.display());
                complete &= derived(source, &args.out);
            }
            Err(error) => {
                eprintln!("error: {error}");
                complete = false;
            }
        }
    }
    Ok(complete)
}

/// Makes what the figures read of a file that they cannot read; `false` if that failed.
fn derived(source: &Source, out: &Path) -> bool {
    let folder = out.join(source.set);
    if source.file != newsgroups::MAT || newsgroups::present(&folder) {
        return true;
    }
    match newsgroups::derive(&folder) {
        Ok(()) => {
            println!(
                "derived  the text of {}",
                folder.join(source.file).display()
            );
            true
        }
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request on a loopback port with `reply`; returns the address.
    fn serve(reply: Vec<u8>) -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/set/file", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            reader.into_inner().write_all(&reply).unwrap();
        });
        (url, server)
    }

    fn reply(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    /// What `fetch` says of such a reply, the address, and the folder afterwards.
    fn attempt(reply: Vec<u8>) -> (Option<String>, String, Vec<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let (url, server) = serve(reply);
        let message = fetch(&url, &files::sha256(b"counts"), &folder.path().join("file"))
            .err()
            .map(|e| e.to_string());
        server.join().unwrap();
        let left = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|f| std::fs::read(f.unwrap().path()).unwrap())
            .collect();
        (message, url, left)
    }

    #[test]
    fn a_good_file_is_written() {
        let (message, _, left) = attempt(reply("200 OK", 6, b"counts"));
        assert_eq!(message, None);
        assert_eq!(left, [b"counts"]);
    }

    #[test]
    fn a_wrong_checksum_names_all_three_and_writes_nothing() {
        let (message, url, left) = attempt(reply("200 OK", 6, b"Counts"));
        let message = message.unwrap();
        for part in [url, files::sha256(b"counts"), files::sha256(b"Counts")] {
            assert!(message.contains(&part), "{message}");
        }
        assert!(left.is_empty());
    }

    #[test]
    fn a_truncated_body_is_a_failed_download() {
        let (message, url, left) = attempt(reply("200 OK", 6, b"cou"));
        assert!(
            message
                .unwrap()
                .starts_with(&format!("cannot download {url}"))
        );
        assert!(left.is_empty());
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
    fn a_bad_file_does_not_replace_a_good_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"before").unwrap();
        let (url, server) = serve(reply("200 OK", 1, b"x"));
        assert!(fetch(&url, &files::sha256(b"counts"), &path).is_err());
        server.join().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
    }

    #[test]
    fn an_unknown_set_lists_the_known_ones() {
        let message = chosen(Some("nothing")).err().unwrap().to_string();
        assert!(SOURCES.iter().all(|s| message.contains(s.set)));
        assert_eq!(chosen(Some("segmentation")).unwrap().len(), 2);
    }
}
