//! Parquet: one row per slot, with the columns of CSV.
//!
//! The metadata of a Parquet file is at its end, so a truncated file cannot be continued. Each page
//! of an export becomes a Parquet file, preceded by its length. At the end, their row groups are
//! copied unchanged into one file.

use std::{
    fs,
    io::{BufRead, Read, Write},
    sync::Arc,
};

use anyhow::Context;
use bytes::Bytes;
use parquet::{
    basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical},
    column::writer::ColumnCloseResult,
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    file::{
        properties::WriterProperties,
        reader::FileReader,
        serialized_reader::SerializedFileReader,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{Type, TypePtr},
};

use super::{
    page::Page,
    rows::{HISTOGRAM, Row, column_name, for_each_cell, histogram_text},
};

/// Writes a page as a Parquet file, and returns the number of its rows.
pub(super) fn write_page(page: &Page, out: &mut Vec<u8>) -> anyhow::Result<u64> {
    let mut rows = Vec::new();
    for_each_cell(page, |row| {
        rows.push(row);
        Ok(())
    })?;
    let mut file = Vec::new();
    let mut writer = writer(&mut file, schema(page)?)?;
    if !rows.is_empty() {
        let mut group = writer.next_row_group()?;
        write_columns(page, &rows, &mut group)?;
        group.close()?;
    }
    writer.close()?;
    out.extend_from_slice(&(file.len() as u64).to_le_bytes());
    out.append(&mut file);
    Ok(rows.len() as u64)
}

/// Joins the files of all pages.
pub(super) fn join(pages: &mut impl BufRead, out: fs::File) -> anyhow::Result<()> {
    let mut joined: Option<SerializedFileWriter<fs::File>> = None;
    let mut out = Some(out);
    while !pages.fill_buf()?.is_empty() {
        let mut length = [0; 8];
        pages.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        pages.take(u64::from_le_bytes(length)).read_to_end(&mut bytes)?;
        let bytes = Bytes::from(bytes);
        let page = SerializedFileReader::new(bytes.clone())?;
        if let Some(out) = out.take() {
            let schema = page.metadata().file_metadata().schema_descr().root_schema_ptr();
            joined = Some(writer(out, schema)?);
        }
        let Some(joined) = &mut joined else { break };
        for group in page.metadata().row_groups() {
            let mut copy = joined.next_row_group()?;
            for column in group.columns() {
                let close = ColumnCloseResult {
                    bytes_written: u64::try_from(column.compressed_size())?,
                    rows_written: u64::try_from(group.num_rows())?,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copy.append_column(&bytes, close)?;
            }
            copy.close()?;
        }
    }
    if let Some(joined) = joined {
        joined.into_inner()?.sync_data()?;
    }
    Ok(())
}

fn writer<W: Write + Send>(out: W, schema: TypePtr) -> anyhow::Result<SerializedFileWriter<W>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("granary ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    Ok(SerializedFileWriter::new(out, schema, Arc::new(properties))?)
}

fn schema(page: &Page) -> anyhow::Result<TypePtr> {
    let column = |name: &str, physical, repetition, logical: Option<LogicalType>| {
        let built = Type::primitive_type_builder(name, physical);
        let built = built.with_repetition(repetition).with_logical_type(logical).build();
        built.map(Arc::new).with_context(|| format!("a column named {name:?}"))
    };
    let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let date = LogicalType::timestamp(true, TimeUnit::MILLIS);
    let text = Some(LogicalType::String);
    let mut fields = vec![
        column("date", Physical::INT64, required, Some(date))?,
        column("metric", Physical::BYTE_ARRAY, required, text.clone())?,
    ];
    for tag in &page.tags {
        let name = column_name(page, tag);
        fields.push(column(&name, Physical::BYTE_ARRAY, optional, text.clone())?);
    }
    fields.push(column("n", Physical::INT64, required, None)?);
    for name in ["sum", "min", "max", "first", "last"] {
        fields.push(column(name, Physical::DOUBLE, optional, None)?);
    }
    if page.has_histograms {
        fields.push(column(HISTOGRAM, Physical::BYTE_ARRAY, optional, Some(LogicalType::Json))?);
    }
    Ok(Arc::new(Type::group_type_builder("granary").with_fields(fields).build()?))
}

fn write_columns<W: Write + Send>(
    page: &Page,
    rows: &[Row<'_>],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> anyhow::Result<()> {
    let dates: Vec<_> = rows.iter().map(|row| row.start).collect();
    required::<Int64Type, _>(group, &dates)?;
    let metrics: Vec<_> = rows.iter().map(|row| ByteArray::from(&*row.series.metric)).collect();
    required::<ByteArrayType, _>(group, &metrics)?;
    for tag in &page.tags {
        let values = rows.iter().map(|row| row.series.tags.get(tag).map(|tag| tag.as_str().into()));
        optional::<ByteArrayType, _>(group, values)?;
    }
    let counts: Vec<_> = rows.iter().map(|row| i64::from(row.cell.1)).collect();
    required::<Int64Type, _>(group, &counts)?;
    let numbers: Vec<_> = rows.iter().map(|row| row.cell.numbers()).collect();
    for index in 0..numbers.first().map_or(0, |row| row.len()) {
        optional::<DoubleType, _>(group, numbers.iter().map(|row| row[index].1))?;
    }
    if page.has_histograms {
        let texts = rows.iter().map(|row| histogram_text(row.document, row.cell));
        let texts = texts.collect::<anyhow::Result<Vec<_>>>()?;
        let texts = texts.into_iter().map(|text| text.map(|text| text.as_str().into()));
        optional::<ByteArrayType, _>(group, texts)?;
    }
    Ok(())
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> anyhow::Result<()> {
    let mut column = group.next_column()?.context("a column too many")?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<T::T>>,
) -> anyhow::Result<()> {
    let mut column = group.next_column()?.context("a column too many")?;
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(column.close()?)
}
