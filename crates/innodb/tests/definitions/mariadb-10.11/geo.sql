CREATE TABLE `geo` (
  `id` int(11) NOT NULL,
  `g` geometry NOT NULL,
  `p` point DEFAULT NULL,
  `l` linestring DEFAULT NULL,
  PRIMARY KEY (`id`),
  SPATIAL KEY `g` (`g`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
