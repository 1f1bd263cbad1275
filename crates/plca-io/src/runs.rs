//! Streams of numbers, and matrices that are compressed by rows or by columns.

use std::io::Read;

use crate::data::Element;
use crate::entries::Found;
use crate::error::Fault;
use crate::npy::{self, Header};

/// Numbers of a file, one after the other.
pub(crate) struct Stream<R> {
    name: &'static str,
    values: npy::Values<R>,
    /// The bytes of all numbers are there, not compressed.
    pub(crate) all_there: bool,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(name: &'static str, values: npy::Values<R>, all_there: bool) -> Self {
        Self {
            name,
            values,
            all_there,
        }
    }

    /// The size of each dimension.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.values.header.shape
    }

    /// How many whole numbers there are; refuses others.
    pub(crate) fn integers(&self) -> Result<usize, Fault> {
        let n = self.values.header.integers();
        n.map_err(|e| e.within(self.name))
    }

    /// Whole numbers, each made by `make` from its place and value; `enough` looks at how many there are before any is read.
    pub(crate) fn whole<U>(
        self,
        enough: impl FnOnce(usize) -> Result<(), Fault>,
        make: impl Fn(usize, u64) -> Result<U, Fault>,
    ) -> Result<Vec<U>, Fault> {
        let Self {
            name,
            values,
            all_there,
        } = self;
        let numbers = (values.header.integers()).and_then(enough).and_then(|()| {
            npy::read_values(values, all_there, |header, at, word| {
                make(at, header.whole(at, word)?)
            })
        });
        numbers.map_err(|e| e.within(name))
    }

    /// All values.
    pub(crate) fn all<T: Element>(self) -> Result<Vec<T>, Fault> {
        let all = npy::read_values(self.values, self.all_there, |header, _, word| {
            Ok(header.decode(word))
        });
        all.map_err(|e| e.within(self.name))
    }

    /// The next number, made from the header and its place and bytes.
    fn next<U>(
        &mut self,
        make: impl FnOnce(&Header, usize, &[u8]) -> Result<U, Fault>,
    ) -> Result<Option<U>, Fault> {
        let at = self.values.taken;
        let next = self.values.next();
        let made = next.and_then(|word| {
            word.map(|(header, word)| make(header, at, word))
                .transpose()
        });
        made.map_err(|e| e.within(self.name))
    }

    /// The next value, if there is one.
    pub(crate) fn value<T: Element>(&mut self) -> Result<Option<T>, Fault> {
        self.next(|header, _, word| Ok(header.decode(word)))
    }

    /// The next index, below `size`.
    pub(crate) fn index(&mut self, size: u64) -> Result<u32, Fault> {
        let index = self.next(|header, at, word| {
            let i = header.whole(at, word)?;
            let below = u32::try_from(i).ok().filter(|_| i < size);
            below.ok_or_else(|| {
                Fault::at(
                    format!("entry {at}"),
                    format!("index {i} is outside 0..{size}"),
                )
            })
        })?;
        index.ok_or_else(|| Fault::at(self.name, "the file ends too early"))
    }

    /// Refuses what follows the last number.
    pub(crate) fn end(mut self) -> Result<(), Fault> {
        self.next(|_, _, _| Ok(())).map(drop)
    }
}

/// Where runs do not fit the entries.
pub(crate) fn unfit(runs: u64, stored: usize) -> Fault {
    Fault::new(format!("does not describe {runs} runs of {stored} entries"))
}

/// Where every run of a compressed matrix begins, and the end of the last one; `most` entries are stored.
pub(crate) fn pointers<R: Read>(
    stream: Stream<R>,
    runs: u64,
    most: usize,
) -> Result<Vec<usize>, Fault> {
    let name = stream.name;
    let enough = |n: usize| {
        let fits = n as u64 == runs + 1;
        fits.then_some(()).ok_or_else(|| unfit(runs, most))
    };
    let pointers = stream.whole(enough, |at, p| {
        let within = usize::try_from(p).ok().filter(|&p| p <= most);
        within.ok_or_else(|| {
            Fault::at(
                format!("entry {at}"),
                format!("{p} is above the {most} stored entries"),
            )
        })
    })?;
    if pointers.first() != Some(&0) {
        return Err(unfit(runs, most).within(name));
    }
    if let Some(at) = pointers.windows(2).position(|ends| ends[1] < ends[0]) {
        return Err(Fault::at(
            format!("{name}: entry {}", at + 1),
            format!("{} after {}", pointers[at + 1], pointers[at]),
        ));
    }
    Ok(pointers)
}

/// Calls `visit` with the entries of a compressed matrix; `minor` are the indices within the runs, and their size.
pub(crate) fn visit<T: Element>(
    by_rows: bool,
    pointers: &[usize],
    (mut minor, minor_size): (Stream<impl Read>, u64),
    mut values: Stream<impl Read>,
    mut visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for (major, ends) in (0..).zip(pointers.windows(2)) {
        for _ in ends[0]..ends[1] {
            let (i, x) = (minor.index(minor_size)?, values.value()?);
            let x = x.ok_or_else(|| Fault::at(values.name, "the file ends too early"))?;
            let index = if by_rows { [major, i] } else { [i, major] };
            visit(Found::Entry(&index, x))?;
        }
    }
    minor.end()?;
    values.end()
}
