CREATE TABLE `prefpk2` (
  `a` varchar(100) NOT NULL,
  `c` int(11) DEFAULT NULL,
  UNIQUE KEY `a` (`a`(10)),
  UNIQUE KEY `u2` (`c`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
