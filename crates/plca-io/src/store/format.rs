//! Header and footer of a store.
//!
//! ```text
//! 0   "PLCASTOR", version u32, bytes of a scalar u32, offset u64, length u64 and CRC-32 u32 of the footer, CRC-32 u32 of the 36 bytes before
//! 40  blocks: rows (row u32, end u32), columns u32, values
//!     footer: JSON
//! ```
//!
//! Everything is little endian.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use plca_tensor::Tiling;
use serde::{Deserialize, Serialize};

use super::{BLOCK, BlockLocation, Input, Store, explained};
use crate::data::{Element, affordable, open as open_file};
use crate::error::Fault;

pub(super) const MAGIC: &[u8] = b"PLCASTOR";
const VERSION: u32 = 2;
/// Bytes before the first block.
pub(super) const HEADER: usize = 40;
/// Bytes of a footer, except for the blocks that are not the last of their tile.
const FOOTER: u64 = 1 << 16;
/// More bytes than the text that describes a block has.
const PLACE: u64 = 64;

/// Bytes that the footer at `offset` may have: all blocks but the last of a tile are full.
fn longest_footer<T>(offset: u64) -> u64 {
    let full = BLOCK as u64 * (4 + size_of::<T>() as u64);
    FOOTER + PLACE * (offset / full)
}

/// The header of a store with scalars of `size` bytes and this footer at `offset`.
pub(super) fn header(size: usize, offset: u64, footer: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend((size as u32).to_le_bytes());
    header.extend(offset.to_le_bytes());
    header.extend((footer.len() as u64).to_le_bytes());
    header.extend(crc32fast::hash(footer).to_le_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    header
}

/// What stands in a footer, in the order of the names.
#[derive(Serialize, Deserialize)]
struct Footer {
    blocks: Vec<BlockLocation>,
    bounds: [Vec<usize>; 2],
    ends: Vec<usize>,
    input: Input,
    scale: f64,
    shape: [usize; 2],
}

/// The footer of a store.
pub(super) fn footer<T: Element>(
    input: Input,
    tiling: &Tiling<T>,
    ends: Vec<usize>,
    blocks: Vec<BlockLocation>,
) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Footer {
        blocks,
        bounds: tiling.bounds().clone(),
        ends,
        input,
        scale: tiling.scale().to_f64(),
        shape: tiling.shape(),
    })
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..].first_chunk().map_or([0; 4], |b| *b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..].first_chunk().map_or([0; 8], |b| *b))
}

pub(super) fn open<T: Element>(path: &Path) -> Result<Store<T>, Fault> {
    let mut file = open_file(path)?;
    let length = file.metadata()?.len();
    let mut header = Vec::new();
    file.by_ref().take(HEADER as u64).read_to_end(&mut header)?;
    if !header.starts_with(MAGIC) {
        return Err(Fault::new("is not a store of sparse data"));
    }
    let changed = |what: &str| Fault::new(format!("the file was changed: {what}"));
    if header.len() < HEADER || crc32fast::hash(&header[..36]) != u32_at(&header, 36) {
        return Err(changed("its header has another checksum"));
    }
    let (version, size) = (u32_at(&header, 8), u32_at(&header, 12));
    if version != VERSION {
        return Err(Fault::new(format!(
            "store version {version}, this program reads {VERSION}"
        )));
    }
    if size as usize != size_of::<T>() {
        let (got, wanted) = (8 * u64::from(size), 8 * size_of::<T>());
        return Err(Fault::new(format!("holds f{got}, f{wanted} is needed")));
    }
    let (offset, footer) = (u64_at(&header, 16), u64_at(&header, 24));
    let written = offset.saturating_add(footer);
    if length != written {
        let what = format!("it has {length} bytes, {written} were written");
        return Err(changed(&what));
    }
    let longest = longest_footer::<T>(offset);
    if footer > longest {
        let what = format!("claims {footer} bytes, more than {longest}");
        return Err(Fault::at("footer", what));
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(footer).read_to_end(&mut text)?;
    if crc32fast::hash(&text) != u32_at(&header, 32) {
        return Err(changed("its footer has another checksum"));
    }
    let footer: Footer = serde_json::from_slice(&text).map_err(|e| Fault::at("footer", e))?;
    let store = described(path, length, footer).filter(|store| consistent(store, offset));
    let store = store.ok_or_else(|| Fault::at("footer", "does not describe the blocks"))?;
    let shape = store.tiling.shape();
    explained(&store.input, shape, &store.blocks)
        .and_then(|()| affordable(&shape))
        .map_err(|e| e.within("footer"))?;
    Ok(store)
}

/// The store that a footer describes; `None` for what is none.
fn described<T: Element>(path: &Path, length: u64, footer: Footer) -> Option<Store<T>> {
    let scale = T::lit(footer.scale);
    Some(Store {
        path: path.into(),
        length,
        input: footer.input,
        tiling: Tiling::from_parts(&footer.shape, footer.bounds, scale).ok()?,
        ends: footer.ends,
        blocks: footer.blocks,
    })
}

/// Whether there are blocks for every tile, one after the other up to the footer, none larger than it can be, and the matrix has
/// the shape that was asked for.
fn consistent<T: Element>(store: &Store<T>, footer: u64) -> bool {
    let [_, columns] = store.tiling.bounds();
    let widest = columns.windows(2).map(|ends| ends[1] - ends[0]).max();
    // A block grows by whole rows until it is full.
    let most = BLOCK as u64 + widest.unwrap_or(0) as u64;
    let mut end = Some(HEADER as u64);
    for block in &store.blocks {
        let (runs, entries) = (block.runs, block.entries);
        let possible = (1..=entries).contains(&runs) && u64::from(entries) < most;
        end = end
            .filter(|&end| end == block.offset && possible)
            .and_then(|end| end.checked_add(block.length::<T>()));
    }
    let asked = store.input.shape.as_deref();
    let tiles = store.ends.len() == store.tiling.tiles();
    tiles
        && asked.is_none_or(|shape| shape == store.tiling.shape())
        && store.ends.is_sorted()
        && store.ends.last() == Some(&store.blocks.len())
        && end == Some(footer)
}
