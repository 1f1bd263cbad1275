//! Sounds by the decoder.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::core::meta::MetadataOptions;

use crate::riff;
use crate::sound::{Decoded, too_long};

/// Endings that are read.
pub(crate) const ENDINGS: &[&str] = match cfg!(feature = "compressed-sound") {
    true => &["wav", "flac", "mp3", "ogg", "m4a", "aac"],
    false => &["wav", "flac"],
};

/// A file without the tags that some programs put behind the last frame: ID3v1, and before it APEv2.
fn untagged(mut file: File) -> std::io::Result<impl Read> {
    let mut length = file.metadata()?.len();
    if let Some(begin) = length.checked_sub(128) {
        let mut name = [0; 3];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut name)?;
        if &name == b"TAG" {
            length = begin;
        }
    }
    if let Some(begin) = length.checked_sub(32) {
        let mut footer = [0; 32];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut footer)?;
        if let [
            b'A',
            b'P',
            b'E',
            b'T',
            b'A',
            b'G',
            b'E',
            b'X',
            _,
            _,
            _,
            _,
            a,
            b,
            c,
            d,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            flags,
            ..,
        ] = footer
        {
            // With the footer; the header comes besides.
            let size =
                u64::from(u32::from_le_bytes([a, b, c, d])) + if flags & 0x80 > 0 { 32 } else { 0 };
            length = length.checked_sub(size).unwrap_or(length);
        }
    }
    file.rewind()?;
    Ok(file.take(length))
}

/// The first track with sound. What is damaged or lacks samples is refused.
pub(crate) fn decode(file: File, ending: &str) -> Result<Decoded, String> {
    let told = |e: Error| match e {
        Error::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the file ends too early".to_string()
        }
        e => e.to_string(),
    };
    let source: Box<dyn MediaSource> = match ending {
        "wav" => Box::new(ReadOnlySource::new(riff::plain(file)?)),
        "flac" => Box::new(ReadOnlySource::new(
            untagged(file).map_err(|e| e.to_string())?,
        )),
        _ => Box::new(file),
    };
    let stream = MediaSourceStream::new(source, Default::default());
    let (options, metadata) = (FormatOptions::default(), MetadataOptions::default());
    let mut hint = Hint::new();
    hint.with_extension(ending);
    let mut format = symphonia::default::get_probe()
        .probe(&hint, stream, options, metadata)
        .map_err(told)?;
    let track = format.default_track(TrackType::Audio);
    let known = track.and_then(|track| {
        Some((
            track.id,
            track.num_frames,
            track.codec_params.as_ref()?.audio()?,
        ))
    });
    let (id, frames, parameters) = known.ok_or("has no sound")?;
    if let (Some(frames), Some(channels), Some(rate)) =
        (frames, &parameters.channels, parameters.sample_rate)
    {
        let channels = channels.count();
        too_long(frames.saturating_mul(channels as u64), channels, rate)?;
    }
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &AudioDecoderOptions::default().verify(true))
        .map_err(told)?;
    let (mut rate, mut channels) = (0, 0);
    let (mut samples, mut of_packet) = (Vec::new(), Vec::<f64>::new());
    while let Some(packet) = format.next_packet().map_err(told)? {
        if packet.track_id != id {
            continue;
        }
        let at = |e: Error| format!("sample {}: {}", samples.len(), told(e));
        let decoded = decoder.decode(&packet).map_err(at)?;
        let spec = (decoded.spec().rate(), decoded.spec().channels().count());
        if samples.is_empty() {
            (rate, channels) = spec;
        }
        if spec != (rate, channels) {
            return Err(format!(
                "sample {}: {} channels at {} Hz follow {channels} at {rate} Hz",
                samples.len(),
                spec.1,
                spec.0
            ));
        }
        decoded.copy_to_vec_interleaved(&mut of_packet);
        too_long((samples.len() + of_packet.len()) as u64, channels, rate)?;
        samples.extend_from_slice(&of_packet);
    }
    // Damaged parts of a FLAC file are passed over; the lengths of others are estimates.
    let found = (samples.len() / channels.max(1)) as u64;
    if let Some(frames) = frames.filter(|&frames| ending == "flac" && frames != found) {
        return Err(format!(
            "has {found} of its {frames} samples: the others are damaged"
        ));
    }
    if decoder.finalize().verify_ok == Some(false) {
        return Err("has other samples than those that were written: it is damaged".into());
    }
    Ok((rate, channels, samples))
}
