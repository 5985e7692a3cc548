-- The columns of information_schema as MySQL 9.7 has them: names, types and collations (utf8mb3_general_ci in place of
-- utf8mb3_tolower_ci).

create table SCHEMATA (
  `CATALOG_NAME` varchar(64) collate utf8mb3_bin not null,
  `SCHEMA_NAME` varchar(64) collate utf8mb3_bin not null,
  `DEFAULT_CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `DEFAULT_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `SQL_PATH` varbinary(0),
  `DEFAULT_ENCRYPTION` enum('NO','YES') collate utf8mb3_bin not null
);

create table TABLES (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `TABLE_TYPE` enum('BASE TABLE','VIEW','SYSTEM VIEW') collate utf8mb3_bin not null,
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
  `CREATE_TIME` timestamp not null,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `TABLE_COLLATION` varchar(64) collate utf8mb3_general_ci,
  `CHECKSUM` bigint,
  `CREATE_OPTIONS` varchar(256) collate utf8mb3_general_ci,
  `TABLE_COMMENT` text collate utf8mb3_general_ci
);

create table COLUMNS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` int unsigned not null,
  `COLUMN_DEFAULT` text collate utf8mb3_bin,
  `IS_NULLABLE` varchar(3) collate utf8mb3_general_ci not null,
  `DATA_TYPE` longtext collate utf8mb3_bin,
  `CHARACTER_MAXIMUM_LENGTH` bigint,
  `CHARACTER_OCTET_LENGTH` bigint,
  `NUMERIC_PRECISION` bigint unsigned,
  `NUMERIC_SCALE` bigint unsigned,
  `DATETIME_PRECISION` int unsigned,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_TYPE` mediumtext collate utf8mb3_bin not null,
  `COLUMN_KEY` enum('','PRI','UNI','MUL') collate utf8mb3_bin not null,
  `EXTRA` varchar(256) collate utf8mb3_general_ci,
  `PRIVILEGES` varchar(154) collate utf8mb3_general_ci,
  `COLUMN_COMMENT` text collate utf8mb3_bin not null,
  `GENERATION_EXPRESSION` longtext collate utf8mb3_bin not null,
  `SRS_ID` int unsigned
);

create table STATISTICS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `NON_UNIQUE` int not null,
  `INDEX_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `INDEX_NAME` varchar(64) collate utf8mb3_general_ci,
  `SEQ_IN_INDEX` int unsigned not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLLATION` varchar(1) collate utf8mb3_general_ci,
  `CARDINALITY` bigint,
  `SUB_PART` bigint,
  `PACKED` varbinary(0),
  `NULLABLE` varchar(3) collate utf8mb3_general_ci not null,
  `INDEX_TYPE` varchar(11) collate utf8mb3_bin not null,
  `COMMENT` varchar(8) collate utf8mb3_general_ci not null,
  `INDEX_COMMENT` varchar(2048) collate utf8mb3_bin not null,
  `IS_VISIBLE` varchar(3) collate utf8mb3_general_ci not null,
  `EXPRESSION` longtext collate utf8mb3_bin
);

create table KEY_COLUMN_USAGE (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci,
  `ORDINAL_POSITION` int unsigned not null,
  `POSITION_IN_UNIQUE_CONSTRAINT` int unsigned,
  `REFERENCED_TABLE_SCHEMA` varchar(64) collate utf8mb3_bin,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_bin,
  `REFERENCED_COLUMN_NAME` varchar(64) collate utf8mb3_general_ci
);

create table TABLE_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_TYPE` varchar(11) collate utf8mb3_bin not null,
  `ENFORCED` varchar(3) collate utf8mb3_bin not null
);

create table REFERENTIAL_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `UNIQUE_CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `UNIQUE_CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `UNIQUE_CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `MATCH_OPTION` enum('NONE','PARTIAL','FULL') collate utf8mb3_bin not null,
  `UPDATE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') collate utf8mb3_bin not null,
  `DELETE_RULE` enum('NO ACTION','RESTRICT','CASCADE','SET NULL','SET DEFAULT') collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_bin not null
);

create table PARTITIONS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
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
  `CREATE_TIME` timestamp not null,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `CHECKSUM` bigint,
  `PARTITION_COMMENT` text collate utf8mb3_bin not null,
  `NODEGROUP` varchar(256) collate utf8mb3_general_ci,
  `TABLESPACE_NAME` varchar(268) collate utf8mb3_bin
);

create table CHECK_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CHECK_CLAUSE` longtext collate utf8mb3_bin not null
);

create table VIEWS (
  `TABLE_CATALOG` varchar(64) collate utf8mb3_bin not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_bin not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_bin not null,
  `VIEW_DEFINITION` longtext collate utf8mb3_bin,
  `CHECK_OPTION` enum('NONE','LOCAL','CASCADED') collate utf8mb3_bin,
  `IS_UPDATABLE` enum('NO','YES') collate utf8mb3_bin,
  `DEFINER` varchar(288) collate utf8mb3_bin,
  `SECURITY_TYPE` varchar(7) collate utf8mb3_bin,
  `CHARACTER_SET_CLIENT` varchar(64) collate utf8mb3_general_ci not null,
  `COLLATION_CONNECTION` varchar(64) collate utf8mb3_general_ci not null
);

create table CHARACTER_SETS (
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `DEFAULT_COLLATE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `DESCRIPTION` varchar(2048) collate utf8mb3_general_ci not null,
  `MAXLEN` int unsigned not null
);

create table COLLATIONS (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `ID` bigint unsigned not null,
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci not null,
  `IS_COMPILED` varchar(3) collate utf8mb3_general_ci not null,
  `SORTLEN` int unsigned not null,
  `PAD_ATTRIBUTE` enum('PAD SPACE','NO PAD') collate utf8mb3_bin not null
);

create table COLLATION_CHARACTER_SET_APPLICABILITY (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CHARACTER_SET_NAME` varchar(64) collate utf8mb3_general_ci not null
);

create table ENGINES (
  `ENGINE` varchar(64) collate utf8mb3_general_ci not null,
  `SUPPORT` varchar(8) collate utf8mb3_general_ci not null,
  `COMMENT` varchar(80) collate utf8mb3_general_ci not null,
  `TRANSACTIONS` varchar(3) collate utf8mb3_general_ci,
  `XA` varchar(3) collate utf8mb3_general_ci,
  `SAVEPOINTS` varchar(3) collate utf8mb3_general_ci
);
