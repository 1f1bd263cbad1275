//! The data sets that figures use: what is fetched, from where, and what is made of it.

use std::path::Path;

use super::{derive, newsgroups};
use crate::Result;

/// One folder of data.
pub(crate) struct Set {
    pub(crate) folder: &'static str,
    /// What it is, and whose.
    pub(crate) what: &'static str,
    pub(crate) licence: &'static str,
    /// Whether the licence leaves out commercial use.
    pub(crate) noncommercial: bool,
    pub(crate) files: &'static [File],
}

/// One file of a set as it is fetched.
pub(crate) struct File {
    pub(crate) name: &'static str,
    /// Repository, commit and path of a public copy.
    pub(crate) copy: [&'static str; 3],
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) makes: Option<Makes>,
}

/// What figures read in place of a file.
pub(crate) struct Makes {
    pub(crate) names: &'static [&'static str],
    /// Makes them beside it, in this folder.
    pub(crate) how: fn(&Path) -> Result<()>,
    /// Whether those that are there are right.
    pub(crate) right: fn(&Path) -> bool,
}

impl File {
    /// Where the copy is.
    pub(crate) fn address(&self) -> String {
        let [repository, commit, path] = self.copy;
        format!("https://raw.githubusercontent.com/{repository}/{commit}/{path}")
    }

    /// What figures read of it.
    pub(crate) fn read(&self) -> Vec<&'static str> {
        match &self.makes {
            Some(makes) => makes.names.to_vec(),
            None => vec![self.name],
        }
    }
}

/// What cannot be given to everybody: whoever has it may put it there, and the figures take it.
pub(crate) struct Own {
    /// File or folder below the folder of data.
    pub(crate) path: &'static str,
    pub(crate) what: &'static str,
}

/// See [`Own`].
pub(crate) const OWN: &[Own] = &[
    Own {
        path: "cbcl/train/face",
        what: "faces of MIT CBCL Face Database 1, the `.pgm` files of 19 x 19 pixels of its folder `train/face`; its terms forbid passing it on",
    },
    Own {
        path: "cbcl/train/non-face",
        what: "the `.pgm` files of its folder `train/non-face`",
    },
    Own {
        path: "timit/speech_male.wav",
        what: "half a minute of one man's sentences of TIMIT (LDC93S1), 16 kHz, one after another; its licence forbids passing it on",
    },
];

const UCI: &str = "CC BY 4.0 (UCI Machine Learning Repository)";

const fn plain(
    name: &'static str,
    copy: [&'static str; 3],
    bytes: u64,
    sha256: &'static str,
) -> File {
    File {
        name,
        copy,
        bytes,
        sha256,
        makes: None,
    }
}

/// Everything that is fetched.
pub(crate) const SETS: &[Set] = &[
    Set {
        folder: "20news_w100",
        what: "100 words in 16242 postings of 20 newsgroups (S. Roweis)",
        licence: "none stated; published for research",
        noncommercial: false,
        files: &[File {
            makes: Some(Makes {
                names: &[newsgroups::TEXT, newsgroups::WORDS],
                how: newsgroups::derive,
                right: newsgroups::present,
            }),
            ..plain(
                newsgroups::MAT,
                [
                    "probml/pmtkdata",
                    "42bc2738a294382f9d6ffb1b0203404ffb10295a",
                    "20news_w100/20news_w100.mat",
                ],
                416_176,
                "6667c5459e22eb544a854bff1443edaaea71735cf1af7b12cc5d986e74af7064",
            )
        }],
    },
    Set {
        folder: "ap_corpus",
        what: "word counts of 2246 articles of the Associated Press (D. Blei, example of lda-c)",
        licence: "LGPL 2.1 for the repository; the archive also holds the articles, which are the agency's: only the counts are unpacked",
        noncommercial: false,
        files: &[File {
            makes: Some(Makes {
                names: &["ap.dat"],
                how: derive::counts,
                right: derive::counts_present,
            }),
            ..plain(
                "ap.tgz",
                [
                    "blei-lab/lda-c",
                    "0c46575e89092683010db077f713f8aa3b3594a2",
                    "example/ap.tgz",
                ],
                2_926_281,
                "92cbe192631874708540db11969211363cf2f5c0a56b2897e0229925e5d4f2a3",
            )
        }],
    },
    Set {
        folder: "drums",
        what: "a drum loop of Sonic Pi's samples (freesound.org, godspine)",
        licence: "CC0 1.0",
        noncommercial: false,
        files: &[plain(
            "loop_compus.flac",
            [
                "sonic-pi-net/sonic-pi",
                "c0002065a976b1355e7889f4aa96a1804e2b8119",
                "etc/samples/loop_compus.flac",
            ],
            412_454,
            "76d2156582500c496a5c168ab2a1ddd7f3df9534ca476eb760375c30f709ed1d",
        )],
    },
    Set {
        folder: "images",
        what: "the group photograph of the Solvay conference of 1927 (B. Couprie), and coloured sweets (OpenCV)",
        licence: "public domain; Apache-2.0",
        noncommercial: false,
        files: &[
            plain(
                "solvay_1927.jpg",
                [
                    "fatimajawaid/cv_models",
                    "962b7726a059802e4b5bad442aad55f12779ecda",
                    "images/solvay.jpg",
                ],
                452_115,
                "2c9fd2f405e5e59760d321e8235d1eb5527a1f3adf6d565c4ebc1b483db091b5",
            ),
            plain(
                "smarties.png",
                [
                    "vaibhavcodes/OpenCV",
                    "6a939f332b20cc7c8ef79838fd23d4c213fc01b6",
                    "smarties.png",
                ],
                36_912,
                "298581a9ace6b7b1e180a3af142b0a31b1817086845deb6476462c1893c4c924",
            ),
        ],
    },
    Set {
        folder: "ionosphere",
        what: "radar returns, 351 x 34, two classes (V. Sigillito)",
        licence: UCI,
        noncommercial: false,
        files: &[plain(
            "ionosphere.data",
            [
                "jbrownlee/Datasets",
                "d20fcb6402ae34e653d4513b00f39257bb37ed7f",
                "ionosphere.csv",
            ],
            76_466,
            "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
        )],
    },
    Set {
        folder: "lfw_subset",
        what: "100 faces and 100 pieces of background of Labeled Faces in the Wild (scikit-image)",
        licence: "BSD-3-Clause for the file; photographs of news sites, for research",
        noncommercial: false,
        files: &[plain(
            "lfw_subset.npy",
            [
                "scikit-image/scikit-image",
                "cd0a3d22b9f359f05618d75d5c7a29b91b4951ca",
                "src/_skimage2/data/lfw_subset.npy",
            ],
            1_000_080,
            "9560ec2f5edfac01973f63a8a99d00053fecd11e21877e18038fbe500f8e872c",
        )],
    },
    Set {
        folder: "movielens_small",
        what: "100836 ratings of films, latest small set of September 2018 (GroupLens; F. M. Harper and J. A. Konstan, ACM TiiS 5(4):19, 2015)",
        licence: "research use; may be passed on under the same terms; no commercial use without permission of GroupLens",
        noncommercial: true,
        files: &[plain(
            "ratings.csv",
            [
                "davidylam/MLDev",
                "4e68cf38f0ee768c242e4aae1c7acbe4e40c273b",
                "ml-latest-small/ratings.csv",
            ],
            2_382_886,
            "2f8fd2116cbb4ef7ddbfd8537a4dd1209fffa15092cb28ec4c03a950827068ad",
        )],
    },
    Set {
        folder: "omniglot_small1",
        what: "Omniglot, hand-drawn characters (B. Lake and others, Science 350, 2015); a sheet of Greek letters is made of it",
        licence: "MIT",
        noncommercial: false,
        files: &[File {
            makes: Some(Makes {
                names: &[derive::SHEET, derive::PLACES],
                how: derive::sheet,
                right: derive::sheet_present,
            }),
            ..plain(
                derive::CHARACTERS,
                [
                    "brendenlake/omniglot",
                    "057f034baf2ecb8530bc5710e5a23584d2a519cc",
                    "python/images_background_small1.zip",
                ],
                1_319_022,
                "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4",
            )
        }],
    },
    Set {
        folder: "piano",
        what: "\"Pistachio Ice Cream Ragtime\" by The Piano Lady (Lena Orsa), freesound.org 442789; its first 12 s are unpacked",
        licence: "CC BY-NC 3.0: with the name of its author, no commercial use",
        noncommercial: true,
        files: &[File {
            makes: Some(Makes {
                names: &[derive::PASSAGE],
                how: derive::passage,
                right: derive::passage_present,
            }),
            ..plain(
                derive::RAGTIME,
                [
                    "librosa/data",
                    "450cdd8a002c98e7bdbfebb309fc1ed024001f77",
                    "audio/442789__lena-orsa__happy-music-pistachio-ice-cream-ragtime.hq.ogg",
                ],
                922_404,
                "1cc83b775e640a8dd409da9e29f5b5e0124bc5ec9bb4fda975919d31d1d893b8",
            )
        }],
    },
    Set {
        folder: "segmentation",
        what: "image segmentation, 2310 x 19, seven classes",
        licence: UCI,
        noncommercial: false,
        files: &[
            plain(
                "segmentation.data",
                [
                    "newtonlb/ProjetoAM",
                    "0ec4ab9d39f10362448a519804dfe3fc2e7d908f",
                    "segmentation.data",
                ],
                34_841,
                "b4226a708f25d44fbbe4eae36f0d66326bc46393534c2a0d2b9267ae1302002f",
            ),
            plain(
                "segmentation.test",
                [
                    "newtonlb/ProjetoAM",
                    "0ec4ab9d39f10362448a519804dfe3fc2e7d908f",
                    "segmentation.test",
                ],
                345_083,
                "3b5aa7c3559fdc3a165e97d321809b81292084adfc112645e250d90321203685",
            ),
        ],
    },
    Set {
        folder: "shuttle",
        what: "Statlog (Shuttle), its test file, 14500 x 9, seven classes",
        licence: UCI,
        noncommercial: false,
        files: &[plain(
            "shuttle.tst",
            [
                "ssmcnatt/assignments",
                "0ff4d1020232e9ff1c32813584601f3dac48423a",
                "data/shuttle.tst",
            ],
            384_257,
            "4d06df909e29d5f908fcbce4e003c8038a7bb5230b57820b4b87be6f38b1c747",
        )],
    },
    Set {
        folder: "speech",
        what: "half a minute of a man reading (LibriSpeech, speaker 1688), in place of TIMIT",
        licence: "CC BY 4.0",
        noncommercial: false,
        files: &[
            plain(
                "1688-142285-0000.flac",
                [
                    SPEECH[0],
                    SPEECH[1],
                    "audio_data/librispeech_test-other/1688/1688-142285-0000.flac",
                ],
                246_143,
                "e372271ee706749e64dff36a05bebbf47176c9b1d4fcea6aef355e4181d79cc5",
            ),
            plain(
                "1688-142285-0001.flac",
                [
                    SPEECH[0],
                    SPEECH[1],
                    "audio_data/librispeech_test-other/1688/1688-142285-0001.flac",
                ],
                240_635,
                "d4756c1be4bcbee8eddb2283d77f3da2f13e0a88955bc35b586b16cc19f67c3f",
            ),
            plain(
                "1688-142285-0002.flac",
                [
                    SPEECH[0],
                    SPEECH[1],
                    "audio_data/librispeech_test-other/1688/1688-142285-0002.flac",
                ],
                57_639,
                "fe137c8c67227afcbd53978b2dc99d2220c0c1197d2a460cc66bf41f24408282",
            ),
        ],
    },
    Set {
        folder: "waveform",
        what: "waveform database generator, 5000 x 21, three classes (L. Breiman and others)",
        licence: UCI,
        noncommercial: false,
        files: &[plain(
            "waveform.data",
            [
                "dhankasushil/Database-for-SE",
                "fe8cf7e50dd3894e1a289d659a656f124c4efe19",
                "waveform.data",
            ],
            555_557,
            "8b6221141343353c1d4bf45d0d8d43cb910e9cee2cb71c346fd30fcdc239578f",
        )],
    },
];

const SPEECH: [&str; 2] = [
    "resemble-ai/Resemblyzer",
    "15d828edebe06bc72b9cabc8ef8ca5ab2cb457ce",
];
