CREATE TABLE `oldt` (
  `id` int(11) NOT NULL,
  `t` time /* mariadb-5.3 */ DEFAULT NULL,
  `t3` time(3) /* mariadb-5.3 */ DEFAULT NULL,
  `d` datetime /* mariadb-5.3 */ DEFAULT NULL,
  `d2` datetime(2) /* mariadb-5.3 */ DEFAULT NULL,
  `ts` timestamp /* mariadb-5.3 */ NULL DEFAULT NULL,
  `ts6` timestamp(6) /* mariadb-5.3 */ NULL DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci
