//! Lines that are too long for their column become several.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Part of a line at whose end a blank or a comma is looked for, so that words stay whole.
const WORD_SEARCH_DIVISOR: usize = 3;

/// Breaks `line` into pieces of at most `width` columns: behind a blank or a comma if one stands in the last third,
/// else anywhere. Pieces after the first keep the line's leading blanks, as long as those leave half of the width.
pub fn fold(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let indent = " ".repeat(if blanks <= width / 2 { blanks } else { 0 });
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let lead = if pieces.is_empty() { "" } else { indent.as_str() };
        let end = break_at(rest, width - lead.len());
        pieces.push(format!("{lead}{}", rest[..end].trim_end_matches(' ')));
        rest = &rest[end..];
    }
    pieces
}

/// Bytes of `text` that make a piece of at most `width` columns, at least one character.
fn break_at(text: &str, width: usize) -> usize {
    let (mut columns, mut end, mut behind_word) = (0, text.len(), None);
    for (at, character) in text.char_indices() {
        columns += character.width().unwrap_or(0);
        if columns > width && at > 0 {
            end = at;
            break;
        }
        if matches!(character, ' ' | ',')
            && columns * WORD_SEARCH_DIVISOR >= width * (WORD_SEARCH_DIVISOR - 1)
        {
            behind_word = Some(at + character.len_utf8());
        }
    }
    if end == text.len() { end } else { behind_word.unwrap_or(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_behind_words_and_keep_their_indent() {
        assert_eq!(fold("short", 10), ["short"]);
        assert_eq!(fold("0123456789abc", 5), ["01234", "56789", "abc"]);
        assert_eq!(fold("  one two three four", 10), ["  one two", "  three", "  four"]);
        assert_eq!(fold("a,b,c,d,e", 4), ["a,b,", "c,d,", "e"]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(fold("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(fold("漢", 1), ["漢"]);
    }
}
