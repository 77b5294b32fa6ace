//! Images of lines, for `/render?format=png`: axes, lines and a legend, as Graphite draws them.
//!
//! Must never know: how lines were computed.

mod axis;

use std::convert::Infallible;

use embedded_graphics::{
    mono_font::{MonoTextStyle, iso_8859_1::FONT_6X10},
    pixelcolor::Rgb888,
    prelude::*,
    primitives::{Line as Stroke, PrimitiveStyle, Rectangle},
    text::{Alignment, Baseline, Text, TextStyleBuilder},
};
use jiff::{Timestamp, tz::TimeZone};

use crate::query::Line;
use axis::Axis;

/// Graphite's default size, in pixels.
const DEFAULT_SIZE: [u32; 2] = [330, 250];
/// The limits of width and height.
const SIDE_MIN: u32 = 80;
const SIDE_MAX: u32 = 4096;
/// The bytes of a pixel.
const PIXEL_BYTES: usize = 3;
/// The size of a character, and the distance between a text and its neighbours.
const LETTER: [i32; 2] = [6, 10];
const GAP: i32 = 4;
/// The maximum number of lines with a legend, as in Graphite.
const LEGEND_LINES_MAX: usize = 10;
const DAY_SECONDS: i64 = 86_400;

const BACKGROUND: Rgb888 = Rgb888::BLACK;
const TEXT: Rgb888 = Rgb888::WHITE;
const GRID: Rgb888 = Rgb888::new(60, 60, 60);
/// The colors of lines, in turn.
const COLORS: [Rgb888; 8] = [
    Rgb888::new(100, 149, 237),
    Rgb888::new(0, 200, 0),
    Rgb888::new(240, 80, 80),
    Rgb888::new(200, 100, 255),
    Rgb888::new(230, 140, 40),
    Rgb888::new(240, 240, 60),
    Rgb888::new(60, 220, 220),
    Rgb888::new(170, 170, 170),
];

/// The size and the texts of an image.
pub(super) struct ImageRequest {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) title: Option<String>,
    /// `None` shows the legend of at most ten lines.
    pub(super) hides_legend: Option<bool>,
}

impl ImageRequest {
    /// Returns a request with the default size where none is given.
    ///
    /// # Errors
    /// The image would be too small or too large.
    pub(super) fn new([width, height]: [Option<usize>; 2]) -> Result<Self, String> {
        let side = |name: &str, given: Option<usize>, default: u32| match given {
            None => Ok(default),
            Some(side) => u32::try_from(side)
                .ok()
                .filter(|side| (SIDE_MIN..=SIDE_MAX).contains(side))
                .ok_or_else(|| format!("{name}={side}: use {SIDE_MIN} to {SIDE_MAX} pixels")),
        };
        let [default_width, default_height] = DEFAULT_SIZE;
        let width = side("width", width, default_width)?;
        let height = side("height", height, default_height)?;
        Ok(Self { width, height, title: None, hides_legend: None })
    }

    /// Returns the bytes of the pixels.
    pub(super) fn memory(&self) -> usize {
        self.width as usize * self.height as usize * PIXEL_BYTES
    }
}

/// Returns the PNG image of lines.
///
/// # Errors
/// The image cannot be encoded.
pub(super) fn png(
    request: &ImageRequest,
    lines: &[Line],
    zone: &TimeZone,
) -> Result<Vec<u8>, png::EncodingError> {
    let mut canvas = Canvas::new(request);
    let Ok(()) = draw(&mut canvas, request, lines, zone);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, request.width, request.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&canvas.pixels)?;
    Ok(bytes)
}

fn draw(
    canvas: &mut Canvas,
    request: &ImageRequest,
    lines: &[Line],
    zone: &TimeZone,
) -> Result<(), Infallible> {
    let has_legend = !request.hides_legend.unwrap_or(lines.len() > LEGEND_LINES_MAX);
    let rows = if has_legend { lines.len().min(LEGEND_LINES_MAX) as i32 } else { 0 };
    let [letter_width, letter_height] = LETTER;
    let row_height = letter_height + GAP;
    let values = Axis::of_values(lines);
    let ticks = values.ticks();
    let longest = ticks.iter().map(|(_, label)| label.len()).max().unwrap_or_default() as i32;
    let (right, bottom) = (request.width as i32 - 2 * GAP, request.height as i32);
    // At least a few rows of pixels remain for the lines.
    let rows = rows.min((bottom / 2 - row_height) / row_height).max(0);
    let legend_top = bottom - rows * row_height - GAP;
    let plot = Plot {
        left: (longest * letter_width + 2 * GAP).min(right / 2),
        right,
        top: if request.title.is_some() { row_height + GAP } else { 2 * GAP },
        bottom: legend_top - row_height,
        times: Axis::of_times(lines),
        values,
    };
    if let Some(title) = &request.title {
        let center = Point::new(request.width as i32 / 2, GAP);
        write(canvas, title, center, Alignment::Center, TEXT)?;
    }
    for (value, label) in &ticks {
        let y = plot.y(*value);
        stroke(canvas, Point::new(plot.left, y), Point::new(plot.right, y), GRID)?;
        let at = Point::new(plot.left - GAP, y - letter_height / 2);
        write(canvas, label, at, Alignment::Right, TEXT)?;
    }
    draw_times(canvas, &plot, zone)?;
    for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
        draw_line(canvas, &plot, line, *color)?;
    }
    for (row, (line, color)) in (0..rows).zip(lines.iter().zip(COLORS.iter().cycle())) {
        let at = Point::new(GAP, legend_top + row * row_height);
        let square = Rectangle::new(at, Size::new_equal(letter_height as u32 - 2));
        square.into_styled(PrimitiveStyle::with_fill(*color)).draw(canvas)?;
        write(canvas, &line.name, at + Point::new(row_height, 0), Alignment::Left, TEXT)?;
    }
    if lines.is_empty() {
        let middle = Point::new(request.width as i32 / 2, bottom / 2);
        write(canvas, "No data", middle, Alignment::Center, TEXT)?;
    }
    Ok(())
}

/// Draws the times below the plot, as many as have room.
fn draw_times(canvas: &mut Canvas, plot: &Plot, zone: &TimeZone) -> Result<(), Infallible> {
    let [letter_width, _] = LETTER;
    let span = plot.times.high - plot.times.low;
    let format = if span <= DAY_SECONDS as f64 { "%H:%M" } else { "%m-%d %H:%M" };
    let count = ((plot.right - plot.left) / (format.len() as i32 * 3 * letter_width)).max(1);
    for tick in 0..=count {
        let at = plot.times.low + span * f64::from(tick) / f64::from(count);
        let Ok(time) = Timestamp::from_second(at as i64) else { continue };
        let label = time.to_zoned(zone.clone()).strftime(format).to_string();
        let x = plot.x(at);
        stroke(canvas, Point::new(x, plot.top), Point::new(x, plot.bottom), GRID)?;
        let alignment = match tick {
            0 => Alignment::Left,
            last if last == count => Alignment::Right,
            _ => Alignment::Center,
        };
        write(canvas, &label, Point::new(x, plot.bottom + GAP), alignment, TEXT)?;
    }
    Ok(())
}

/// Draws the neighbouring points of a line; a missing number leaves a gap.
fn draw_line(
    canvas: &mut Canvas,
    plot: &Plot,
    line: &Line,
    color: Rgb888,
) -> Result<(), Infallible> {
    let mut previous = None;
    for (index, value) in line.values.iter().enumerate() {
        let at = line.start as f64 + line.step as f64 * index as f64;
        let point = value.is_finite().then(|| Point::new(plot.x(at), plot.y(*value)));
        if let Some(point) = point {
            stroke(canvas, previous.unwrap_or(point), point, color)?;
        }
        previous = point;
    }
    Ok(())
}

fn stroke(canvas: &mut Canvas, from: Point, to: Point, color: Rgb888) -> Result<(), Infallible> {
    Stroke::new(from, to).into_styled(PrimitiveStyle::with_stroke(color, 1)).draw(canvas)
}

fn write(
    canvas: &mut Canvas,
    text: &str,
    at: Point,
    alignment: Alignment,
    color: Rgb888,
) -> Result<(), Infallible> {
    let visible = (canvas.width as i32 / LETTER[0]).max(0) as usize;
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(visible).collect();
    let style = MonoTextStyle::new(&FONT_6X10, color);
    let layout = TextStyleBuilder::new().alignment(alignment).baseline(Baseline::Top).build();
    Text::with_text_style(&text, at, style, layout).draw(canvas).map(drop)
}

/// The area of the lines, with its axes.
struct Plot {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    times: Axis,
    values: Axis,
}

impl Plot {
    fn x(&self, at: f64) -> i32 {
        self.left + (self.times.position(at) * f64::from(self.right - self.left)) as i32
    }

    fn y(&self, value: f64) -> i32 {
        self.bottom - (self.values.position(value) * f64::from(self.bottom - self.top)) as i32
    }
}

/// The pixels of an image, by rows.
struct Canvas {
    pixels: Vec<u8>,
    width: u32,
    height: u32,
}

impl Canvas {
    fn new(request: &ImageRequest) -> Self {
        let background = [BACKGROUND.r(), BACKGROUND.g(), BACKGROUND.b()];
        let pixels = background.repeat(request.memory() / PIXEL_BYTES);
        Self { pixels, width: request.width, height: request.height }
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        for Pixel(point, color) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(point.x), u32::try_from(point.y)) else { continue };
            if x < self.width {
                let at = (y as usize * self.width as usize + x as usize) * PIXEL_BYTES;
                if let Some(pixel) = self.pixels.get_mut(at..at + PIXEL_BYTES) {
                    pixel.copy_from_slice(&[color.r(), color.g(), color.b()]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
