-- The columns of information_schema as MySQL 9.7 has them: names, types and collations (utf8mb3_general_ci in place of
-- utf8mb3_tolower_ci).

create table SCHEMATA (
  `CATALOG_NAME` varchar(64) collate utf8mb3_bin,
  `SCHEMA_NAME` varchar(64) collate utf8mb3_bin,
  `DEFAULT_CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci,
  `DEFAULT_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `SQL_PATH` varbinary(0),
  `DEFAULT_ENCRYPTION` enum('NO','YES') collate utf8mb3_bin
);

create table TABLES (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `TABLE_TYPE` enum('BASE TABLE','VIEW','SYSTEM VIEW') collate utf8mb3_bin,
  `ENGINE` varchar(64) collate utf8mb3_general_ci,
  `VERSION` int,
  `ROW_FORMAT` enum('Fixed','Dynamic','Compressed','Redundant','Compact','Paged') collate utf8mb3_bin,
  `TABLE_ROWS` bigint unsigned,
  `AVG_ROW_LENGTH` bigint unsigned,
  `DATA_LENGTH` bigint unsigned,
  `MAX_DATA_LENGTH` bigint unsigned,
  `INDEX_LENGTH` bigint unsigned,
  `DATA_FREE` bigint unsigned,
  `AUTO_INCREMENT` bigint unsigned,
  `CREATE_TIME` timestamp,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `TABLE_COLLATION` varchar(64) collate utf8mb3_general_ci,
  `CHECKSUM` bigint,
  `CREATE_OPTIONS` varchar(256) collate utf8mb3_general_ci,
  `TABLE_COMMENT` text collate utf8mb3_general_ci
);

create table COLUMNS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` int unsigned,
  `COLUMN_DEFAULT` text collate utf8mb3_bin,
  `IS_NULLABLE` varchar(3) collate utf8mb3_general_ci,
  `DATA_TYPE` longtext collate utf8mb3_bin,
  `CHARACTER_MAXIMUM_LENGTH` bigint,
  `CHARACTER_OCTET_LENGTH` bigint,
  `NUMERIC_PRECISION` bigint unsigned,
  `NUMERIC_SCALE` bigint unsigned,
  `DATETIME_PRECISION` int unsigned,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_TYPE` mediumtext collate utf8mb3_bin,
  `COLUMN_KEY` enum('','PRI','UNI','MUL') collate utf8mb3_bin,
  `EXTRA` varchar(256) collate utf8mb3_general_ci,
  `PRIVILEGES` varchar(154) collate utf8mb3_general_ci,
  `COLUMN_COMMENT` text collate utf8mb3_bin,
  `GENERATION_EXPRESSION` longtext collate utf8mb3_bin,
  `SRS_ID` int unsigned
);

create table STATISTICS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `NON_UNIQUE` int,
  `INDEX_SCHEMA` varchar(64) collate utf8mb3_bin,
  `INDEX_NAME` varchar(64) collate utf8mb3_general_ci,
  `SEQ_IN_INDEX` int unsigned,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLLATION` varchar(1) collate utf8mb3_general_ci,
  `CARDINALITY` bigint,
  `SUB_PART` bigint,
  `PACKED` varbinary(0),
  `NULLABLE` varchar(3) collate utf8mb3_general_ci,
  `INDEX_TYPE` varchar(11) collate utf8mb3_bin,
  `COMMENT` varchar(8) collate utf8mb3_general_ci,
  `INDEX_COMMENT` varchar(2048) collate utf8mb3_bin,
  `IS_VISIBLE` varchar(3) collate utf8mb3_general_ci,
  `EXPRESSION` longtext collate utf8mb3_bin
);

create table KEY_COLUMN_USAGE (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` int unsigned,
  `POSITION_IN_UNIQUE_CONSTRAINT` int unsigned,
  `REFERENCED_TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `REFERENCED_COLUMN_NAME` varchar(64) collate utf8mb3_general_ci
);

create table TABLE_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_TYPE` varchar(11) collate utf8mb3_bin,
  `ENFORCED` varchar(3) collate utf8mb3_bin
);

create table REFERENTIAL_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `UNIQUE_CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin,
  `UNIQUE_CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin,
  `UNIQUE_CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `MATCH_OPTION` enum('NONE','PARTIAL','FULL') collate utf8mb3_bin,
  `UPDATE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') collate utf8mb3_bin,
  `DELETE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_bin
);

create table PARTITIONS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `PARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `SUBPARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `PARTITION_ORDINAL_POSITION` int unsigned,
  `SUBPARTITION_ORDINAL_POSITION` int unsigned,
  `SECONDARY_LOAD` varchar(1) collate utf8mb3_bin,
  `PARTITION_METHOD` varchar(13) collate utf8mb3_general_ci,
  `SUBPARTITION_METHOD` varchar(13) collate utf8mb3_general_ci,
  `PARTITION_EXPRESSION` varchar(2048) collate utf8mb3_bin,
  `SUBPARTITION_EXPRESSION` varchar(2048) collate utf8mb3_bin,
  `PARTITION_DESCRIPTION` text collate utf8mb3_bin,
  `TABLE_ROWS` bigint unsigned,
  `AVG_ROW_LENGTH` bigint unsigned,
  `DATA_LENGTH` bigint unsigned,
  `MAX_DATA_LENGTH` bigint unsigned,
  `INDEX_LENGTH` bigint unsigned,
  `DATA_FREE` bigint unsigned,
  `CREATE_TIME` timestamp,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `CHECKSUM` bigint,
  `PARTITION_COMMENT` text collate utf8mb3_bin,
  `NODEGROUP` varchar(256) collate utf8mb3_general_ci,
  `TABLESPACE_NAME` varchar(268) collate utf8mb3_bin
);

create table CHECK_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `CHECK_CLAUSE` longtext collate utf8mb3_bin
);

create table VIEWS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `VIEW_DEFINITION` longtext collate utf8mb3_bin,
  `CHECK_OPTION` enum('NONE','LOCAL','CASCADED') collate utf8mb3_bin,
  `IS_UPDATABLE` enum('NO','YES') collate utf8mb3_bin,
  `DEFINER` varchar(288) collate utf8mb3_bin,
  `SECURITY_TYPE` varchar(7) collate utf8mb3_bin,
  `CHARACTER_SET_CLIENT` varchar(64) collate utf8mb3_general_ci,
  `COLLATION_CONNECTION` varchar(64) collate utf8mb3_general_ci
);

create table CHARACTER_SETS (
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci,
  `DEFAULT_COLLATE_NAME` varchar(64) collate utf8mb3_general_ci,
  `DESCRIPTION` varchar(2048) collate utf8mb3_general_ci,
  `MAXLEN` int unsigned
);

create table COLLATIONS (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci,
  `ID` bigint unsigned,
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci,
  `IS_COMPILED` varchar(3) collate utf8mb3_general_ci,
  `SORTLEN` int unsigned,
  `PAD_ATTRIBUTE` enum('PAD SPACE','NO PAD') collate utf8mb3_bin
);

create table COLLATION_CHARACTER_SET_APPLICABILITY (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci
);

create table ENGINES (
  `ENGINE` varchar(64) collate utf8mb3_general_ci,
  `SUPPORT` varchar(8) collate utf8mb3_general_ci,
  `COMMENT` varchar(80) collate utf8mb3_general_ci,
  `TRANSACTIONS` varchar(3) collate utf8mb3_general_ci,
  `XA` varchar(3) collate utf8mb3_general_ci,
  `SAVEPOINTS` varchar(3) collate utf8mb3_general_ci
);
