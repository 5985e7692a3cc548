CREATE TABLE `lots` (
  `id` int(11) NOT NULL,
  `c1` varchar(10) DEFAULT 'a',
  `c2` int(11) DEFAULT NULL COMMENT 'the ''second''',
  `c3` datetime NOT NULL DEFAULT '2020-01-01 00:00:00',
  `c4` decimal(10,2) DEFAULT -1.50,
  `c5` bit(4) DEFAULT b'101',
  `c6` varchar(20) DEFAULT 'x',
  PRIMARY KEY (`id`),
  KEY `k1` (`c1` DESC,`c2`),
  KEY `k2` (`c2` DESC),
  KEY `k3` (`c3`) USING BTREE COMMENT 'kc',
  KEY `k4` (`c4`) IGNORED
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
