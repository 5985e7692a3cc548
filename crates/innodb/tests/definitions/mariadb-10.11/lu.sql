CREATE TABLE `lu` (
  `id` int(11) NOT NULL,
  `t` text DEFAULT NULL,
  `b` blob DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `ut` (`t`) USING HASH,
  UNIQUE KEY `ub` (`b`,`id`) USING HASH,
  KEY `pre` (`t`(30))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
