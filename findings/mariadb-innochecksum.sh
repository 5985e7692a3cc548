#!/usr/bin/env bash
# MariaDB 10.11.19: the page summary of its own innochecksum does not know the pages of PAGE_COMPRESSED tables in the
# default format (full_crc32): it counts them as "Other type of page", and no index pages.
. "$(dirname "$0")/mariadb.inc"
sql "use finding; create table t (id int primary key, a varchar(2000)) page_compressed=1;
    insert into t select seq, repeat('tanada ', 200) from seq_1_to_2000; flush tables t for export"
summary=$("$folder/root/usr/bin/innochecksum" --page-type-summary "$folder/data/finding/t.ibd")
echo "$summary" | grep -E 'Index page|Other type of page'
others=$(echo "$summary" | awk '/Other type of page/ { print $1 }')
[ "$others" -gt 20 ] || { echo "was: more than 20 pages of other types" >&2; exit 1; }
