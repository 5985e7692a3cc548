//! The numbers behind [`super::collation`], as `information_schema.COLLATIONS` of both servers lists them.

/// Character set, fewest and most bytes of a character, number of the default collation (MariaDB's where the servers
/// differ).
pub(super) const CHARSETS: &[(&str, u8, u8, u16)] = &[
    ("armscii8", 1, 1, 32),
    ("ascii", 1, 1, 11),
    ("big5", 1, 2, 1),
    ("binary", 1, 1, 63),
    ("cp1250", 1, 1, 26),
    ("cp1251", 1, 1, 51),
    ("cp1256", 1, 1, 57),
    ("cp1257", 1, 1, 59),
    ("cp850", 1, 1, 4),
    ("cp852", 1, 1, 40),
    ("cp866", 1, 1, 36),
    ("cp932", 1, 2, 95),
    ("dec8", 1, 1, 3),
    ("eucjpms", 1, 3, 97),
    ("euckr", 1, 2, 19),
    ("gb18030", 1, 4, 248),
    ("gb2312", 1, 2, 24),
    ("gbk", 1, 2, 28),
    ("geostd8", 1, 1, 92),
    ("greek", 1, 1, 25),
    ("hebrew", 1, 1, 16),
    ("hp8", 1, 1, 6),
    ("keybcs2", 1, 1, 37),
    ("koi8r", 1, 1, 7),
    ("koi8u", 1, 1, 22),
    ("latin1", 1, 1, 8),
    ("latin2", 1, 1, 9),
    ("latin5", 1, 1, 30),
    ("latin7", 1, 1, 41),
    ("macce", 1, 1, 38),
    ("macroman", 1, 1, 39),
    ("sjis", 1, 2, 13),
    ("swe7", 1, 1, 10),
    ("tis620", 1, 1, 18),
    ("ucs2", 2, 2, 35),
    ("ujis", 1, 3, 12),
    ("utf16", 2, 4, 54),
    ("utf16le", 2, 4, 56),
    ("utf32", 4, 4, 60),
    ("utf8mb3", 1, 3, 33),
    ("utf8mb4", 1, 4, 45),
];

/// First number of each family of UCA collations, ascending; [`LANGUAGES`] follow from there.
pub(super) const FAMILIES: &[(u16, &str)] =
    &[(101, "utf16"), (128, "ucs2"), (160, "utf32"), (192, "utf8mb3"), (224, "utf8mb4")];

/// The languages of a family, in the order of their numbers.
pub(super) const LANGUAGES: &[&str] = &[
    "unicode",
    "icelandic",
    "latvian",
    "romanian",
    "slovenian",
    "polish",
    "estonian",
    "spanish",
    "swedish",
    "turkish",
    "czech",
    "danish",
    "lithuanian",
    "slovak",
    "spanish2",
    "roman",
    "persian",
    "esperanto",
    "hungarian",
    "sinhala",
    "german2",
    "croatian",
    "unicode_520",
    "vietnamese",
];

/// Collations outside of the families. MariaDB's Croatian, Myanmar and Thai ones start at 576; its 245 and kin are
/// called `croatian_mysql561`.
#[rustfmt::skip]
pub(super) const COLLATIONS: &[(u16, &str)] = &[
    (1, "big5_chinese_ci"), (2, "latin2_czech_cs"), (3, "dec8_swedish_ci"), (4, "cp850_general_ci"), (5, "latin1_german1_ci"),
    (6, "hp8_english_ci"), (7, "koi8r_general_ci"), (8, "latin1_swedish_ci"), (9, "latin2_general_ci"), (10, "swe7_swedish_ci"),
    (11, "ascii_general_ci"), (12, "ujis_japanese_ci"), (13, "sjis_japanese_ci"), (14, "cp1251_bulgarian_ci"), (15, "latin1_danish_ci"),
    (16, "hebrew_general_ci"), (18, "tis620_thai_ci"), (19, "euckr_korean_ci"), (20, "latin7_estonian_cs"), (21, "latin2_hungarian_ci"),
    (22, "koi8u_general_ci"), (23, "cp1251_ukrainian_ci"), (24, "gb2312_chinese_ci"), (25, "greek_general_ci"), (26, "cp1250_general_ci"),
    (27, "latin2_croatian_ci"), (28, "gbk_chinese_ci"), (29, "cp1257_lithuanian_ci"), (30, "latin5_turkish_ci"), (31, "latin1_german2_ci"),
    (32, "armscii8_general_ci"), (33, "utf8mb3_general_ci"), (34, "cp1250_czech_cs"), (35, "ucs2_general_ci"), (36, "cp866_general_ci"),
    (37, "keybcs2_general_ci"), (38, "macce_general_ci"), (39, "macroman_general_ci"), (40, "cp852_general_ci"), (41, "latin7_general_ci"),
    (42, "latin7_general_cs"), (43, "macce_bin"), (44, "cp1250_croatian_ci"), (45, "utf8mb4_general_ci"), (46, "utf8mb4_bin"),
    (47, "latin1_bin"), (48, "latin1_general_ci"), (49, "latin1_general_cs"), (50, "cp1251_bin"), (51, "cp1251_general_ci"),
    (52, "cp1251_general_cs"), (53, "macroman_bin"), (54, "utf16_general_ci"), (55, "utf16_bin"), (56, "utf16le_general_ci"),
    (57, "cp1256_general_ci"), (58, "cp1257_bin"), (59, "cp1257_general_ci"), (60, "utf32_general_ci"), (61, "utf32_bin"),
    (62, "utf16le_bin"), (63, "binary"), (64, "armscii8_bin"), (65, "ascii_bin"), (66, "cp1250_bin"), (67, "cp1256_bin"), (68, "cp866_bin"),
    (69, "dec8_bin"), (70, "greek_bin"), (71, "hebrew_bin"), (72, "hp8_bin"), (73, "keybcs2_bin"), (74, "koi8r_bin"), (75, "koi8u_bin"),
    (76, "utf8mb3_tolower_ci"), (77, "latin2_bin"), (78, "latin5_bin"), (79, "latin7_bin"), (80, "cp850_bin"), (81, "cp852_bin"),
    (82, "swe7_bin"), (83, "utf8mb3_bin"), (84, "big5_bin"), (85, "euckr_bin"), (86, "gb2312_bin"), (87, "gbk_bin"), (88, "sjis_bin"),
    (89, "tis620_bin"), (90, "ucs2_bin"), (91, "ujis_bin"), (92, "geostd8_general_ci"), (93, "geostd8_bin"), (94, "latin1_spanish_ci"),
    (95, "cp932_japanese_ci"), (96, "cp932_bin"), (97, "eucjpms_japanese_ci"), (98, "eucjpms_bin"), (99, "cp1250_polish_ci"),
    (159, "ucs2_general_mysql500_ci"), (223, "utf8mb3_general_mysql500_ci"), (248, "gb18030_chinese_ci"), (249, "gb18030_bin"),
    (250, "gb18030_unicode_520_ci"), (576, "utf8mb3_croatian_ci"), (577, "utf8mb3_myanmar_ci"), (578, "utf8mb3_thai_520_w2"),
    (608, "utf8mb4_croatian_ci"), (609, "utf8mb4_myanmar_ci"), (610, "utf8mb4_thai_520_w2"), (640, "ucs2_croatian_ci"),
    (641, "ucs2_myanmar_ci"), (642, "ucs2_thai_520_w2"), (672, "utf16_croatian_ci"), (673, "utf16_myanmar_ci"), (674, "utf16_thai_520_w2"),
    (736, "utf32_croatian_ci"), (737, "utf32_myanmar_ci"), (738, "utf32_thai_520_w2"),
];

/// MySQL's UCA 9.0.0 collations of `utf8mb4`.
#[rustfmt::skip]
pub(super) const UCA0900: &[(u16, &str)] = &[
    (255, "0900_ai_ci"), (256, "de_pb_0900_ai_ci"), (257, "is_0900_ai_ci"), (258, "lv_0900_ai_ci"), (259, "ro_0900_ai_ci"),
    (260, "sl_0900_ai_ci"), (261, "pl_0900_ai_ci"), (262, "et_0900_ai_ci"), (263, "es_0900_ai_ci"), (264, "sv_0900_ai_ci"),
    (265, "tr_0900_ai_ci"), (266, "cs_0900_ai_ci"), (267, "da_0900_ai_ci"), (268, "lt_0900_ai_ci"), (269, "sk_0900_ai_ci"),
    (270, "es_trad_0900_ai_ci"), (271, "la_0900_ai_ci"), (273, "eo_0900_ai_ci"), (274, "hu_0900_ai_ci"), (275, "hr_0900_ai_ci"),
    (277, "vi_0900_ai_ci"), (278, "0900_as_cs"), (279, "de_pb_0900_as_cs"), (280, "is_0900_as_cs"), (281, "lv_0900_as_cs"),
    (282, "ro_0900_as_cs"), (283, "sl_0900_as_cs"), (284, "pl_0900_as_cs"), (285, "et_0900_as_cs"), (286, "es_0900_as_cs"),
    (287, "sv_0900_as_cs"), (288, "tr_0900_as_cs"), (289, "cs_0900_as_cs"), (290, "da_0900_as_cs"), (291, "lt_0900_as_cs"),
    (292, "sk_0900_as_cs"), (293, "es_trad_0900_as_cs"), (294, "la_0900_as_cs"), (296, "eo_0900_as_cs"), (297, "hu_0900_as_cs"),
    (298, "hr_0900_as_cs"), (300, "vi_0900_as_cs"), (303, "ja_0900_as_cs"), (304, "ja_0900_as_cs_ks"), (305, "0900_as_ci"),
    (306, "ru_0900_ai_ci"), (307, "ru_0900_as_cs"), (308, "zh_0900_as_cs"), (309, "0900_bin"), (310, "nb_0900_ai_ci"),
    (311, "nb_0900_as_cs"), (312, "nn_0900_ai_ci"), (313, "nn_0900_as_cs"), (314, "sr_latn_0900_ai_ci"), (315, "sr_latn_0900_as_cs"),
    (316, "bs_0900_ai_ci"), (317, "bs_0900_as_cs"), (318, "bg_0900_ai_ci"), (319, "bg_0900_as_cs"), (320, "gl_0900_ai_ci"),
    (321, "gl_0900_as_cs"), (322, "mn_cyrl_0900_ai_ci"), (323, "mn_cyrl_0900_as_cs"),
];

/// MariaDB's UCA 14.0.0 collations: character sets by number.
pub(super) const UCA1400_CHARSETS: &[&str] = &["utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"];

/// MariaDB's UCA 14.0.0 collations: languages by number, empty for the root; `None` are numbers without a collation.
#[rustfmt::skip]
pub(super) const UCA1400: &[Option<&str>] = &[
    Some(""), Some("icelandic"), Some("latvian"), Some("romanian"), Some("slovenian"), Some("polish"), Some("estonian"), Some("spanish"),
    Some("swedish"), Some("turkish"), Some("czech"), Some("danish"), Some("lithuanian"), Some("slovak"), Some("spanish2"), Some("roman"),
    Some("persian"), Some("esperanto"), Some("hungarian"), Some("sinhala"), Some("german2"), None, None, Some("vietnamese"), Some("croatian"), None,
];
