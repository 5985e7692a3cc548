CREATE TABLE `seqs` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `d` datetime(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
  `ts` timestamp NULL DEFAULT NULL,
  `x` varchar(20) DEFAULT uuid(),
  PRIMARY KEY (`id`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`x` <> ''),
  CONSTRAINT `foo` CHECK (`x` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=10 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
