CREATE TABLE `ft` (
  `id` int(11) NOT NULL,
  `t` text DEFAULT NULL,
  `u` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `k` (`u`),
  FULLTEXT KEY `ft1` (`t`),
  FULLTEXT KEY `ft2` (`u`,`t`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
