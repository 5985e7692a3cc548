-- The columns of information_schema as MariaDB 10.11 has them: names, types and collations.

create table SCHEMATA (
  `CATALOG_NAME` varchar(512) collate utf8mb3_general_ci not null,
  `SCHEMA_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `DEFAULT_CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci not null,
  `DEFAULT_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `SQL_PATH` varchar(512) collate utf8mb3_general_ci,
  `SCHEMA_COMMENT` varchar(1024) collate utf8mb3_general_ci not null
);

create table TABLES (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_TYPE` varchar(64) collate utf8mb3_general_ci not null,
  `ENGINE` varchar(64) collate utf8mb3_general_ci,
  `VERSION` bigint(21) unsigned,
  `ROW_FORMAT` varchar(10) collate utf8mb3_general_ci,
  `TABLE_ROWS` bigint(21) unsigned,
  `AVG_ROW_LENGTH` bigint(21) unsigned,
  `DATA_LENGTH` bigint(21) unsigned,
  `MAX_DATA_LENGTH` bigint(21) unsigned,
  `INDEX_LENGTH` bigint(21) unsigned,
  `DATA_FREE` bigint(21) unsigned,
  `AUTO_INCREMENT` bigint(21) unsigned,
  `CREATE_TIME` datetime,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `TABLE_COLLATION` varchar(64) collate utf8mb3_general_ci,
  `CHECKSUM` bigint(21) unsigned,
  `CREATE_OPTIONS` varchar(2048) collate utf8mb3_general_ci,
  `TABLE_COMMENT` varchar(2048) collate utf8mb3_general_ci not null,
  `MAX_INDEX_LENGTH` bigint(21) unsigned,
  `TEMPORARY` varchar(1) collate utf8mb3_general_ci
);

create table COLUMNS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `ORDINAL_POSITION` bigint(21) unsigned not null,
  `COLUMN_DEFAULT` longtext collate utf8mb3_general_ci,
  `IS_NULLABLE` varchar(3) collate utf8mb3_general_ci not null,
  `DATA_TYPE` varchar(64) collate utf8mb3_general_ci not null,
  `CHARACTER_MAXIMUM_LENGTH` bigint(21) unsigned,
  `CHARACTER_OCTET_LENGTH` bigint(21) unsigned,
  `NUMERIC_PRECISION` bigint(21) unsigned,
  `NUMERIC_SCALE` bigint(21) unsigned,
  `DATETIME_PRECISION` bigint(21) unsigned,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci,
  `COLUMN_TYPE` longtext collate utf8mb3_general_ci not null,
  `COLUMN_KEY` varchar(3) collate utf8mb3_general_ci not null,
  `EXTRA` varchar(80) collate utf8mb3_general_ci not null,
  `PRIVILEGES` varchar(80) collate utf8mb3_general_ci not null,
  `COLUMN_COMMENT` varchar(1024) collate utf8mb3_general_ci not null,
  `IS_GENERATED` varchar(6) collate utf8mb3_general_ci not null,
  `GENERATION_EXPRESSION` longtext collate utf8mb3_general_ci
);

create table STATISTICS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `NON_UNIQUE` bigint(1) not null,
  `INDEX_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `INDEX_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `SEQ_IN_INDEX` int(2) unsigned not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `COLLATION` varchar(1) collate utf8mb3_general_ci,
  `CARDINALITY` bigint(21),
  `SUB_PART` bigint(3),
  `PACKED` varchar(10) collate utf8mb3_general_ci,
  `NULLABLE` varchar(3) collate utf8mb3_general_ci not null,
  `INDEX_TYPE` varchar(16) collate utf8mb3_general_ci not null,
  `COMMENT` varchar(16) collate utf8mb3_general_ci,
  `INDEX_COMMENT` varchar(1024) collate utf8mb3_general_ci not null,
  `IGNORED` varchar(3) collate utf8mb3_general_ci not null
);

create table KEY_COLUMN_USAGE (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `COLUMN_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `ORDINAL_POSITION` bigint(10) not null,
  `POSITION_IN_UNIQUE_CONSTRAINT` bigint(10),
  `REFERENCED_TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_general_ci,
  `REFERENCED_COLUMN_NAME` varchar(64) collate utf8mb3_general_ci
);

create table TABLE_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CONSTRAINT_TYPE` varchar(64) collate utf8mb3_general_ci not null
);

create table REFERENTIAL_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `UNIQUE_CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `UNIQUE_CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `UNIQUE_CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci,
  `MATCH_OPTION` varchar(64) collate utf8mb3_general_ci not null,
  `UPDATE_RULE` varchar(64) collate utf8mb3_general_ci not null,
  `DELETE_RULE` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `REFERENCED_TABLE_NAME` varchar(64) collate utf8mb3_general_ci
);

create table PARTITIONS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `PARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `SUBPARTITION_NAME` varchar(64) collate utf8mb3_general_ci,
  `PARTITION_ORDINAL_POSITION` bigint(21) unsigned,
  `SUBPARTITION_ORDINAL_POSITION` bigint(21) unsigned,
  `PARTITION_METHOD` varchar(18) collate utf8mb3_general_ci,
  `SUBPARTITION_METHOD` varchar(12) collate utf8mb3_general_ci,
  `PARTITION_EXPRESSION` longtext collate utf8mb3_general_ci,
  `SUBPARTITION_EXPRESSION` longtext collate utf8mb3_general_ci,
  `PARTITION_DESCRIPTION` longtext collate utf8mb3_general_ci,
  `TABLE_ROWS` bigint(21) unsigned not null,
  `AVG_ROW_LENGTH` bigint(21) unsigned not null,
  `DATA_LENGTH` bigint(21) unsigned not null,
  `MAX_DATA_LENGTH` bigint(21) unsigned,
  `INDEX_LENGTH` bigint(21) unsigned not null,
  `DATA_FREE` bigint(21) unsigned not null,
  `CREATE_TIME` datetime,
  `UPDATE_TIME` datetime,
  `CHECK_TIME` datetime,
  `CHECKSUM` bigint(21) unsigned,
  `PARTITION_COMMENT` varchar(80) collate utf8mb3_general_ci not null,
  `NODEGROUP` varchar(12) collate utf8mb3_general_ci not null,
  `TABLESPACE_NAME` varchar(64) collate utf8mb3_general_ci
);

create table CHECK_CONSTRAINTS (
  `CONSTRAINT_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `CONSTRAINT_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CONSTRAINT_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `LEVEL` varchar(6) collate utf8mb3_general_ci not null,
  `CHECK_CLAUSE` longtext collate utf8mb3_general_ci not null
);

create table VIEWS (
  `TABLE_CATALOG` varchar(512) collate utf8mb3_general_ci not null,
  `TABLE_SCHEMA` varchar(64) collate utf8mb3_general_ci not null,
  `TABLE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `VIEW_DEFINITION` longtext collate utf8mb3_general_ci not null,
  `CHECK_OPTION` varchar(8) collate utf8mb3_general_ci not null,
  `IS_UPDATABLE` varchar(3) collate utf8mb3_general_ci not null,
  `DEFINER` varchar(384) collate utf8mb3_general_ci not null,
  `SECURITY_TYPE` varchar(7) collate utf8mb3_general_ci not null,
  `CHARACTER_SET_CLIENT` varchar(32) collate utf8mb3_general_ci not null,
  `COLLATION_CONNECTION` varchar(64) collate utf8mb3_general_ci not null,
  `ALGORITHM` varchar(10) collate utf8mb3_general_ci not null
);

create table CHARACTER_SETS (
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci not null,
  `DEFAULT_COLLATE_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `DESCRIPTION` varchar(60) collate utf8mb3_general_ci not null,
  `MAXLEN` bigint(3) not null
);

create table COLLATIONS (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci,
  `ID` bigint(11),
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci,
  `IS_COMPILED` varchar(3) collate utf8mb3_general_ci not null,
  `SORTLEN` bigint(3) not null
);

create table COLLATION_CHARACTER_SET_APPLICABILITY (
  `COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `CHARACTER_SET_NAME` varchar(32) collate utf8mb3_general_ci not null,
  `FULL_COLLATION_NAME` varchar(64) collate utf8mb3_general_ci not null,
  `ID` bigint(11) not null,
  `IS_DEFAULT` varchar(3) collate utf8mb3_general_ci not null
);

create table ENGINES (
  `ENGINE` varchar(64) collate utf8mb3_general_ci not null,
  `SUPPORT` varchar(8) collate utf8mb3_general_ci not null,
  `COMMENT` varchar(160) collate utf8mb3_general_ci not null,
  `TRANSACTIONS` varchar(3) collate utf8mb3_general_ci,
  `XA` varchar(3) collate utf8mb3_general_ci,
  `SAVEPOINTS` varchar(3) collate utf8mb3_general_ci
);
