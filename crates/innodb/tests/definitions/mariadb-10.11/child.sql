CREATE TABLE `child` (
  `id` int(11) NOT NULL,
  `p` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `fk1` (`p`),
  CONSTRAINT `fk1` FOREIGN KEY (`p`) REFERENCES `seqs` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
