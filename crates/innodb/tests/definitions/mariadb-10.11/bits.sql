CREATE TABLE `bits` (
  `id` int(11) NOT NULL,
  `b` bit(3) DEFAULT NULL,
  `f` float unsigned DEFAULT NULL,
  `d` double(10,3) DEFAULT NULL,
  `de` decimal(10,4) unsigned zerofill DEFAULT NULL,
  `y` year(4) DEFAULT NULL,
  `t` tinyint(1) DEFAULT NULL,
  `c` char(5) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,
  `cb` binary(3) DEFAULT NULL,
  `vb` varchar(4) CHARACTER SET utf32 COLLATE utf32_general_ci DEFAULT NULL,
  `tx` text CHARACTER SET latin2 COLLATE latin2_general_ci DEFAULT NULL,
  `tt` tinytext DEFAULT NULL,
  `tb` tinytext DEFAULT NULL,
  `dd` decimal(38,38) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=koi8r COLLATE=koi8r_general_ci
