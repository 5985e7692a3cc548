CREATE TABLE `uuids` (
  `id` uuid NOT NULL,
  `a` inet6 DEFAULT NULL,
  `b` inet4 DEFAULT NULL,
  `n` int(11) INVISIBLE DEFAULT 3,
  `c` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`c`)),
  `v` varchar(40) GENERATED ALWAYS AS (concat(`n`,'x')) VIRTUAL,
  `s` varchar(40) GENERATED ALWAYS AS (concat(`n`,'y')) STORED,
  PRIMARY KEY (`id`),
  KEY `v` (`v`),
  KEY `a` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='hello'
