CREATE TABLE `nn` (
  `c` int(11) NOT NULL,
  `a` int(11) DEFAULT NULL,
  UNIQUE KEY `u2` (`c`),
  UNIQUE KEY `a` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
