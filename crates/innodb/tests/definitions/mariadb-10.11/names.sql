CREATE TABLE `tàble ñ#1` (
  `col é` enum('ä','b,c','it''s','日本') DEFAULT NULL,
  `s` set('x','ÿ') CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `e2` enum('a','б') CHARACTER SET ucs2 COLLATE ucs2_general_ci DEFAULT NULL,
  `e3` enum('α','\\') CHARACTER SET greek COLLATE greek_general_ci DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
