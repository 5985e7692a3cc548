CREATE TABLE `prefpk` (
  `a` varchar(100) NOT NULL,
  `b` blob NOT NULL,
  `c` int(11) DEFAULT NULL,
  `d` char(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci NOT NULL,
  PRIMARY KEY (`a`(10),`b`(5),`d`),
  KEY `c` (`c`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
