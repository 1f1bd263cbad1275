//! Sounds that were compressed with loss.

use std::fs::File;

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use crate::sound::{Decoded, MAX_SAMPLES};

/// Endings that are read.
pub(crate) const ENDINGS: [&str; 4] = ["mp3", "ogg", "m4a", "aac"];

/// The first track with sound; a packet that is damaged ends it.
pub(crate) fn decode(file: File, ending: &str) -> Result<Decoded, String> {
    let told = |e: Error| e.to_string();
    let stream = MediaSourceStream::new(Box::new(file), Default::default());
    let (options, metadata) = (FormatOptions::default(), MetadataOptions::default());
    let mut hint = Hint::new();
    hint.with_extension(ending);
    let mut format = symphonia::default::get_probe()
        .probe(&hint, stream, options, metadata)
        .map_err(told)?;
    let track = format.default_track(TrackType::Audio);
    let parameters =
        track.and_then(|track| Some((track.id, track.codec_params.as_ref()?.audio()?)));
    let (id, parameters) = parameters.ok_or("has no sound")?;
    let mut decoder = symphonia::default::get_codecs()
        .make_audio_decoder(parameters, &AudioDecoderOptions::default())
        .map_err(told)?;
    let (mut rate, mut channels) = (0, 0);
    let (mut samples, mut packet_samples) = (Vec::new(), Vec::<f32>::new());
    while let Some(packet) = format.next_packet().map_err(told)? {
        if packet.track_id != id {
            continue;
        }
        let at = |e: Error| format!("sample {}: {e}", samples.len());
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
        decoded.copy_to_vec_interleaved(&mut packet_samples);
        if samples.len() + packet_samples.len() > MAX_SAMPLES {
            return Err(format!("more than {MAX_SAMPLES} samples"));
        }
        samples.extend(packet_samples.iter().map(|&x| f64::from(x)));
    }
    Ok((rate, channels, samples))
}
