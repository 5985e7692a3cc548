#!/usr/bin/env bash
# MariaDB 10.11.19: in some character sets letters have no case, or that of another letter, where the same letters have it
# in others. Four Russian letters stay as they are in cp866, and T and t are the wrong way round in macce.
. "$(dirname "$0")/mariadb.inc"
shows 'абвгдежзийклм' "select lower(convert(_utf8mb4'АБВГДЕЖЗИЙКЛМ' using koi8r))"
shows 'абвгдеЖЗИЙклм' "select lower(convert(_utf8mb4'АБВГДЕЖЗИЙКЛМ' using cp866))"
shows 'RSTU rstu' "select concat(upper(convert('rstu' using latin2)), ' ', lower(convert('RSTU' using latin2)))"
shows 'RStU rsTu' "select concat(upper(convert('rstu' using macce)), ' ', lower(convert('RSTU' using macce)))"
