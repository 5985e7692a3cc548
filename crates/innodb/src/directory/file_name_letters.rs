//! The letters that file names spell with `@` and two characters.
//!
//! MySQL's manual calls this the mapping of identifiers to file names: each script has a block of pairs, in which
//! lower-case letters follow each other; the capital of a letter is spelled with the capital of the pair's letter.
//! Twenty letters, `g` to `z`, count the places. Polytonic Greek is left out; its names show as they are spelled.

/// Latin and Greek: the first character is the row, 0 to 9, the second the place. A full stop is a free place.
#[rustfmt::skip]
const ROWS: [&str; 10] = [
    "àáâãäåæçèéêëìíîïðñòó",
    "ôõößøùúûüýþÿāăąćĉċčď",
    "đēĕėęěĝğġģĥħĩīĭįıĳĵķ",
    "ĸĺļľŀłńņňŉŋōŏőœŕŗřśŝ",
    "şšţťŧũūŭůűųŵŷźżžſ",
    "..................ΐ",
    "άέήίΰαβγδεζηθικλμνξο",
    "πρςστυφχψωϊϋόύώ.ϐϑ",
    ".ϕϖϗϙϛϝϟϡϣϥϧϩϫϭϯϰϱϲϳ",
    "ϵ϶ϸϻϼ",
];

/// Cyrillic, Armenian, Roman numerals and the rest of Latin: the second character is the column, `0` to `9` and `a` to
/// `r`, the first the place.
#[rustfmt::skip]
const COLUMNS: [&str; 28] = [
    "абвгдежзийклмнопрсту",
    "фхцчшщъыьэюяѐёђѓєѕії",
    "јљњћќѝўџѡѣѥѧѩѫѭѯѱѳѵѷ",
    "ѹѻѽѿҁ.ҋҍҏґғҕҗҙқҝҟҡңҥ",
    "ҧҩҫҭүұҳҵҷҹһҽҿ.ӂӄӆӈӊӌ",
    "ӎ.ӑӓӕӗәӛӝӟӡӣӥӧөӫӭӯӱӳ",
    "ӵӷӹ......ԁԃԅԇԉԋԍԏ",
    ".աբգդեզէըթժիլխծկհձղճ",
    "մյնշոչպջռսվտրցւփքօ",
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅺⅻⅼⅽⅾⅿ",
    "ƀƃƅƈƌƍƒƕƙƚƛƞơƣƥƨƪƫƭư",
    "ƴƶƹƺƻ.ƾƽǆǉǌǎǐǒǔǖǘǚǜǝ",
    "ǟǡǣǥǧǩǫǭǯǰǳǵǹǻǽǿȁȃȅȇ",
    "ȉȋȍȏȑȓȕȗșțȝȟȡȣȥȧȩȫȭȯ",
    "ȱȳȴȵȶȷȸȹ.ȼ.ȿɀ",
    ".......ɐɑɒɓɔɕɖɗɘəɚɛɜ",
    "ɝɞɟɠɡɢɣɤɥɦɧɨɩɪɫɬɭɮɯɰ",
    "ɱɲɳɴɵɶɷɸɹɺɻɼɽɾɿʀʁʂʃʄ",
    "ʅʆʇʈʉʊʋʌʍʎʏʐʑʒʓʔʕʖʗʘ",
    "ʙʚʛʜʝʞʟʠʡʢʣʤʥʦʧʨʩʪʫʬ",
    "ʭʮʯ",
    "ḁḃḅḇḉḋḍḏḑḓḕḗḙḛḝḟḡḣḥḧ",
    "ḩḫḭḯḱḳḵḷḹḻḽḿṁṃṅṇṉṋṍṏ",
    "ṑṓṕṗṙṛṝṟṡṣṥṧṩṫṭṯṱṳṵṷ",
    "ṹṻṽṿẁẃẅẇẉẋẍẏẑẓẕẖẗẘẙẚ",
    "ẛ....ạảấầẩẫậắằẳẵặẹẻẽ",
    "ếềểễệỉịọỏốồổỗộớờởỡợụ",
    "ủứừửữựỳỵỷỹ",
];

/// Capitals that are not those of the letter in their place, the server having its own table of them.
const OWN_CAPITALS: [(char, char, char); 2] = [('8', 'Y', 'Σ'), ('T', '4', 'Ӏ')];

/// The letter behind `@ab`.
pub(super) fn decode_pair(a: char, b: char) -> Option<char> {
    if let Some(own) = OWN_CAPITALS.iter().find(|own| (own.0, own.1) == (a, b)) {
        return Some(own.2);
    }
    let (letters, place) = match (a, b) {
        ('0'..='9', 'G'..='Z' | 'g'..='z') => (ROWS.get(a.to_digit(10)? as usize)?, b),
        ('G'..='Z' | 'g'..='z', '0'..='9' | 'a'..='r') => (COLUMNS.get(b.to_digit(28)? as usize)?, a),
        ('@', 'a'..='z' | 'A'..='Z') => return enclosed('ⓐ', 'Ⓐ', b),
        ('a'..='z' | 'A'..='Z', '@') => return enclosed('ａ', 'Ａ', a),
        _ => return None,
    };
    let letter = letters.chars().nth((u32::from(place.to_ascii_lowercase()) - u32::from('g')) as usize)?;
    match place.is_ascii_lowercase() {
        _ if letter == '.' => None,
        true => Some(letter),
        false => letter.to_uppercase().next().filter(|capital| !capital.is_ascii() && *capital != letter),
    }
}

/// Alphabets of 26 letters in a row.
fn enclosed(first: char, first_capital: char, letter: char) -> Option<char> {
    let (start, base) = if letter.is_ascii_lowercase() { (first, 'a') } else { (first_capital, 'A') };
    char::from_u32(u32::from(start) + u32::from(letter) - u32::from(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs from the server's own table.
    #[test]
    fn letters_of_every_block() {
        for (pair, letter) in [
            ("0g", 'à'),
            ("0G", 'À'),
            ("0k", 'ä'),
            ("0P", 'É'),
            ("1j", 'ß'),
            ("1R", 'Ÿ'),
            ("2w", 'ı'),
            ("4g", 'ş'),
            ("6l", 'α'),
            ("6L", 'Α'),
            ("7W", 'Β'),
            ("8Y", 'Σ'),
            ("g0", 'а'),
            ("G0", 'А'),
            ("z1", 'ї'),
            ("T4", 'Ӏ'),
            ("h7", 'ա'),
            ("G9", 'Ⅰ'),
            ("ga", 'ƀ'),
            ("Qf", 'Ɓ'),
            ("gl", 'ḁ'),
            ("Lp", 'Ạ'),
            ("@a", 'ⓐ'),
            ("A@", 'Ａ'),
        ] {
            let mut characters = pair.chars();
            let (a, b) = (characters.next().unwrap(), characters.next().unwrap());
            assert_eq!(decode_pair(a, b), Some(letter), "{pair}");
        }
    }

    #[test]
    fn other_pairs_are_none() {
        for (a, b) in [('0', '0'), ('a', 'a'), ('5', 'g'), ('g', 's'), ('g', '7'), ('é', 'g'), ('2', 'W')] {
            assert_eq!(decode_pair(a, b), None, "{a}{b}");
        }
    }
}
