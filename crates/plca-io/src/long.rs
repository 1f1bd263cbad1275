//! Parquet: long tables, a row for every entry.
//!
//! The package `parquet` takes metadata and pages apart. Pages are unpacked here, because a page of a few bytes may claim any size; and with none of
//! its features the package needs neither Arrow nor a C library.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use plca_tensor::Coordinates;
use ruzstd::decoding::StreamingDecoder;

use crate::allowance::Allowance;
use crate::data::{Element, check_order, open};
use crate::error::{Fault, guarded};
use crate::zipped::MAX_DEFLATE;

/// Rows that are read at a time.
const BATCH: usize = 1 << 13;
/// Bytes that any page may unpack to, besides [`MAX_DEFLATE`] for each of its own.
const FREE: u64 = 1 << 20;
/// Bytes that every reader of zstd is to look back.
const WINDOW: u64 = 1 << 23;

impl From<ParquetError> for Fault {
    fn from(e: ParquetError) -> Self {
        Self::new(e)
    }
}

/// The column of an index, or that of the values.
const INDEX: &str = "index_";
const VALUE: &str = "value";

/// Pages of a column, unpacked within bounds.
struct Unpacked {
    packed: SerializedPageReader<File>,
    codec: Compression,
}

impl Unpacked {
    fn new(file: &Arc<File>, column: &ColumnChunkMetaData, rows: usize) -> Result<Self> {
        let plain = column.clone().into_builder();
        let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
        Ok(Self {
            packed: SerializedPageReader::new(file.clone(), &plain, rows, None)?,
            codec: column.compression(),
        })
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let most = FREE + MAX_DEFLATE * bytes.len() as u64;
        let large = || ParquetError::General(format!("a page unpacks to more than {most} bytes"));
        let all = |reader: &mut dyn Read| -> Result<Vec<u8>> {
            let mut out = Vec::new();
            match reader.take(most + 1).read_to_end(&mut out)? as u64 > most {
                true => Err(large()),
                false => Ok(out),
            }
        };
        match self.codec {
            Compression::UNCOMPRESSED => Ok(bytes.to_vec()),
            Compression::SNAPPY => {
                let wrong = |e: snap::Error| ParquetError::General(e.to_string());
                if snap::raw::decompress_len(bytes).map_err(wrong)? as u64 > most {
                    return Err(large());
                }
                snap::raw::Decoder::new()
                    .decompress_vec(bytes)
                    .map_err(wrong)
            }
            Compression::GZIP(_) => all(&mut MultiGzDecoder::new(bytes)),
            Compression::ZSTD(_) => {
                let wrong = |e| ParquetError::General(format!("{e}"));
                let window = most.max(WINDOW);
                let reader = StreamingDecoder::new_with_max_window_size(bytes, window);
                all(&mut reader.map_err(wrong)?)
            }
            other => Err(ParquetError::General(format!(
                "packed by {other}, expected snappy, gzip, zstd or nothing"
            ))),
        }
    }

    fn page(&self, mut page: Page) -> Result<Page> {
        match &mut page {
            Page::DataPage { buf, .. } => *buf = self.unpack(buf)?.into(),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let levels = usize::try_from(levels).unwrap_or(usize::MAX);
                let short = || ParquetError::EOF("a page is shorter than its levels".into());
                let (levels, values) = buf.split_at_checked(levels).ok_or_else(short)?;
                if *is_compressed && !values.is_empty() {
                    *buf = [levels, &self.unpack(values)?].concat().into();
                }
                *is_compressed = false;
            }
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                let unpacked = self.unpack(buf)?;
                // Room is made for all of them at once.
                if *num_values as usize > unpacked.len() {
                    let what = format!(
                        "a dictionary of {} bytes claims {num_values} values",
                        unpacked.len()
                    );
                    return Err(ParquetError::General(what));
                }
                *buf = unpacked.into();
            }
        }
        Ok(page)
    }
}

impl Iterator for Unpacked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Unpacked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.packed.get_next_page()?;
        page.map(|page| self.page(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.packed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.packed.skip_next_page()
    }
}

/// A number as a column holds it.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

/// Where a table has its columns.
struct Columns {
    /// Those of the indices in their order, then that of the values.
    places: Vec<usize>,
}

/// Whether a column holds numbers as they stand, not dates or parts of a decimal.
fn plain(column: &ColumnDescPtr) -> bool {
    use ConvertedType::{INT_8, INT_16, INT_32, INT_64, NONE, UINT_8, UINT_16, UINT_32, UINT_64};
    let whole = [
        NONE, INT_8, INT_16, INT_32, INT_64, UINT_8, UINT_16, UINT_32, UINT_64,
    ];
    let logical = column.logical_type_ref();
    matches!(logical, None | Some(LogicalType::Integer(_)))
        && whole.contains(&column.converted_type())
        && column.max_rep_level() == 0
}

impl Columns {
    fn of(schema: &SchemaDescriptor) -> std::result::Result<Self, Fault> {
        let (mut indices, mut values) = (Vec::new(), None);
        for (place, column) in schema.columns().iter().enumerate() {
            let name = column.path().string();
            let twice = || Fault::at(format!("column {name}"), "occurs twice");
            let number = name
                .strip_prefix(INDEX)
                .and_then(|n| n.parse::<usize>().ok());
            let types = match (number, name == VALUE) {
                (Some(number), _) => {
                    indices.push((number, place));
                    [Type::INT32, Type::INT64].as_slice()
                }
                (None, true) => {
                    if values.replace(place).is_some() {
                        return Err(twice());
                    }
                    &[
                        Type::DOUBLE,
                        Type::FLOAT,
                        Type::INT32,
                        Type::INT64,
                        Type::BOOLEAN,
                    ]
                }
                (None, false) => continue,
            };
            if !plain(column) || !types.contains(&column.physical_type()) {
                let what = match number {
                    Some(_) => {
                        "whole numbers from 0: number the labels, as `from_long` of plcakit does"
                    }
                    None => "real numbers",
                };
                return Err(Fault::at(
                    format!("column {name}"),
                    format!("expected {what}"),
                ));
            }
        }
        indices.sort_unstable();
        let complete = indices
            .iter()
            .map(|&(number, _)| number)
            .eq(0..indices.len());
        let Some(value) = values.filter(|_| complete && !indices.is_empty()) else {
            let names: Vec<_> = schema.columns().iter().map(|c| c.path().string()).collect();
            return Err(Fault::new(format!(
                "has the columns {}; expected {INDEX}0, {INDEX}1 and so on, each once, and {VALUE}",
                names.join(", ")
            )));
        };
        check_order(indices.len())?;
        let places = indices.into_iter().map(|(_, place)| place).chain([value]);
        Ok(Self {
            places: places.collect(),
        })
    }
}

/// The next numbers of a column, at most `most`.
fn numbers<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    most: usize,
    number: impl Fn(D::T) -> Number,
) -> std::result::Result<Vec<Number>, Fault> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut rows = 0;
    while rows < most {
        let (more, _, _) =
            reader.read_records(most - rows, Some(&mut levels), None, &mut values)?;
        if more == 0 {
            return Err(Fault::new("has fewer rows than the table"));
        }
        rows += more;
        if values.len() < rows {
            return Err(Fault::new("has a row without a number"));
        }
    }
    Ok(values.into_iter().map(number).collect())
}

/// The next numbers of a column of any type; `unsigned` numbers are stored as signed ones.
fn next(
    reader: &mut ColumnReader,
    unsigned: bool,
    most: usize,
) -> std::result::Result<Vec<Number>, Fault> {
    use Number::{Real, Whole};
    match reader {
        ColumnReader::BoolColumnReader(r) => numbers(r, most, |x| Whole(x.into())),
        ColumnReader::Int32ColumnReader(r) if unsigned => {
            numbers(r, most, |x| Whole((x as u32).into()))
        }
        ColumnReader::Int32ColumnReader(r) => numbers(r, most, |x| Whole(x.into())),
        // Beyond 2^63 no index is one, and no count is exact.
        ColumnReader::Int64ColumnReader(r) if unsigned => numbers(r, most, |x| match x {
            ..0 => Real(x as u64 as f64),
            _ => Whole(x),
        }),
        ColumnReader::Int64ColumnReader(r) => numbers(r, most, Whole),
        ColumnReader::FloatColumnReader(r) => numbers(r, most, |x| Real(x.into())),
        ColumnReader::DoubleColumnReader(r) => numbers(r, most, Real),
        _ => Err(Fault::new("is not one of numbers")),
    }
}

/// Whether a column holds numbers without a sign.
fn is_unsigned(column: &ColumnDescPtr) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    [UINT_8, UINT_16, UINT_32, UINT_64].contains(&column.converted_type())
}

/// Refuses metadata that the file has no room for.
fn within(metadata: &ParquetMetaData, length: u64) -> std::result::Result<(), Fault> {
    let most = FREE + MAX_DEFLATE * length;
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        let claimed = u64::try_from(group.num_rows()).unwrap_or(u64::MAX);
        rows = rows.saturating_add(claimed);
        for column in group.columns() {
            let (start, bytes) = column.byte_range();
            if start.checked_add(bytes).is_none_or(|end| end > length) {
                return Err(Fault::new("a column reaches beyond the end of the file"));
            }
        }
    }
    match rows <= most {
        true => Ok(()),
        false => Err(Fault::new(format!("claims {rows} rows in {length} bytes"))),
    }
}

/// The entries of a table: columns `index_0`, `index_1`, … of indices from 0, and `value`. Other columns are left out. The size of every mode is the
/// largest index and one, unless it is asked for.
pub(crate) fn read<T: Element>(
    path: &Path,
    asked: Option<&[usize]>,
    allowance: &Allowance,
) -> std::result::Result<Coordinates<T>, Fault> {
    let file = Arc::new(open(path)?);
    let length = file.metadata()?.len();
    let broken = |e: String| Fault::new(format!("is not a Parquet file: {e}"));
    // A fault has a place, which a text would lose: it is not the error of what is guarded.
    let read = guarded(|| -> std::result::Result<_, String> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&*file);
        Ok(metadata
            .map_err(|e| broken(e.to_string()))
            .and_then(|metadata| {
                within(&metadata, length)?;
                entries(&file, &metadata, asked, allowance)
            }))
    });
    read.unwrap_or_else(|e| Err(broken(e)))
}

fn entries<T: Element>(
    file: &Arc<File>,
    metadata: &ParquetMetaData,
    asked: Option<&[usize]>,
    allowance: &Allowance,
) -> std::result::Result<Coordinates<T>, Fault> {
    let schema = metadata.file_metadata().schema_descr();
    let columns = Columns::of(schema)?;
    let order = columns.places.len() - 1;
    if let Some(asked) = asked
        && asked.len() != order
    {
        let what = format!(
            "has {order} indices, not the {} of the shape {asked:?}",
            asked.len()
        );
        return Err(Fault::new(what));
    }
    let mut shape = vec![0usize; order];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut row = 0;
    for group in metadata.row_groups() {
        let mut left = usize::try_from(group.num_rows()).unwrap_or(0);
        let mut readers = Vec::new();
        for &place in &columns.places {
            let pages = Unpacked::new(file, group.column(place), left)?;
            let column = schema.column(place);
            readers.push(get_column_reader(column, Box::new(pages)));
        }
        while left > 0 {
            let most = left.min(BATCH);
            let mut batch = Vec::new();
            for (&place, reader) in columns.places.iter().zip(&mut readers) {
                let column = schema.column(place);
                let numbers = next(reader, is_unsigned(&column), most);
                let name = column.path().string();
                batch.push(numbers.map_err(|e| e.within(format!("column {name}")))?);
            }
            let numbers = batch.pop().unwrap_or_default();
            allowance.take(most * (size_of::<u32>() * order + size_of::<T>()))?;
            for (at, &number) in numbers.iter().enumerate() {
                for (mode, size) in shape.iter_mut().enumerate() {
                    let limit = asked.map_or(u32::MAX as usize, |asked| asked[mode]);
                    let index = match batch[mode][at] {
                        Number::Whole(i) => usize::try_from(i).ok().filter(|&i| i < limit),
                        Number::Real(_) => None,
                    };
                    let Some(index) = index else {
                        let what = match batch[mode][at] {
                            Number::Whole(i) => i.to_string(),
                            Number::Real(x) => x.to_string(),
                        };
                        return Err(Fault::at(
                            format!("row {}: column {INDEX}{mode}", row + at),
                            format!("index {what} is outside 0..{limit}"),
                        ));
                    };
                    *size = (*size).max(index + 1);
                    indices.push(index as u32);
                }
                values.push(match number {
                    Number::Whole(x) => T::lit(x as f64),
                    Number::Real(x) => T::lit(x),
                });
            }
            row += most;
            left -= most;
        }
    }
    if values.is_empty() {
        return Err(Fault::new("holds no entry"));
    }
    Ok(Coordinates {
        shape: asked.map_or(shape, <[usize]>::to_vec),
        indices,
        values,
    })
}
